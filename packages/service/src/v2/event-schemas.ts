/** The events of both streams. */
import { constant, flag, named, object, oneOf, ref, type Schema, text } from '../openapi/schema.js';

function event(name: string, data: Schema, description: string): Schema {
  return { ...object({ event: constant(name, description), data }), description };
}

const nothing = { type: 'object', description: 'Empty.' };
const outage = object({ code: constant('unknown', 'The store did not answer.') });

const lockEvent = named('LockEvent', {
  description: 'One event: the text after `event:`, and the JSON after `data:`.',
  anyOf: [
    event('appeared', ref('Lock'), 'A lock that is held or waited for.'),
    event('changed', ref('Lock'), 'Its holders or waiters are others than before.'),
    event('renewed', ref('Lock'), 'It expires later.'),
    event('gone', ref('Lock'), 'Nobody holds it or waits for it any more.'),
    event('ready', nothing, 'Every lock there is has been sent.'),
    event('trouble', outage, 'The store does not answer. `ready` follows when it does again.'),
  ],
});

const wakeUp = object({
  key: text('Namespace, slash, name.'),
  why: oneOf(['turn', 'waiting', 'evicted'], 'The lock is free, others wait for it, or it was evicted.'),
});

const inboxEvent = named('InboxEvent', {
  description: 'One event: the text after `event:`, and the JSON after `data:`.',
  anyOf: [
    event('ready', nothing, 'Wake-ups are sent from now on.'),
    event('wake', wakeUp, 'Ask the store again.'),
    event(
      'listening',
      object({ listening: flag('Whether wake-ups arrive.') }),
      'The store lost its wake-ups, or has them again.',
    ),
    event('trouble', outage, 'The store does not answer. The stream ends.'),
  ],
});

export const eventSchemas = [lockEvent, inboxEvent];
