/** Schemas of the answers and events of `/v2`. They serialise them, and are in the OpenAPI document. */
import type { FastifyInstance } from 'fastify';
import type { ProblemCode } from '../http/problem.js';
import { BODY_PROBLEMS, COMMON_PROBLEMS, PROBLEM_MEMBERS } from '../openapi/problem-schema.js';
import {
  constant,
  count,
  type Description,
  flag,
  large,
  list,
  named,
  object,
  oneOf,
  orNull,
  ref,
  type Schema,
  text,
  time,
} from '../openapi/schema.js';
import { historySchemas } from './history-schemas.js';
import { requestSchemas } from './request-schemas.js';

const TOKEN = large('The fencing token. Every grant of a key has a higher one than the grants before it.');
const key = text('Namespace, slash, name.');
const owner = text("The owner's name, for people to read.");
const decidedAt = time('When the store decided this.');
const remainingMs = large('How long the lock is certain to be held. Count from when you sent the request.');
const acquiredAt = time('When the lock was granted.');
const expiresAt = time('When the lock expires if it is not renewed.');

const holder = named(
  'Holder',
  object({
    owner,
    permits: count('How many permits it holds.'),
    capacity: count('How many permits there are. 1 for a plain lock.'),
    token: TOKEN,
    acquiredAt,
    expiresAt,
    metadata: { description: 'As the holder gave it: any JSON. Null if it gave none.' },
    resting: flag('Released before its `minHold` was over: nobody else gets the lock before `expiresAt`.'),
  }),
);

const waiter = named(
  'Waiter',
  object({
    owner,
    permits: count('How many permits it asks for.'),
    capacity: count('How many permits there are.'),
    since: large(
      'When it began to wait. Milliseconds since 1970, by the clock of the service or of the store: for display only.',
    ),
    woken: flag('The lock was offered to it.'),
  }),
);

const lock = named(
  'Lock',
  object({
    key,
    now: time('When the store was read.'),
    token: large('The highest token so far. 0 if the key is not known.'),
    holders: list(ref('Holder'), 'At most 1,000, with at most 256 KB of metadata.'),
    holding: count('How many holders there are in all.'),
    waiters: list(ref('Waiter'), 'In order, at most 128.'),
    waiting: count('How many waiters there are in all.'),
  }),
);

const lockPage = named(
  'LockPage',
  object({
    locks: list(ref('Lock')),
    next: orNull('string', 'The `after` of the next page. Null on the last page.'),
  }),
);

const grant = named(
  'Grant',
  object({ key, hold: ref('Hold'), token: TOKEN, owner, acquiredAt, expiresAt, now: decidedAt, remainingMs }),
);

const renewed = named('Renewed', object({ key, expiresAt, now: decidedAt, remainingMs }));

const released = named(
  'Released',
  object({
    key,
    released: constant(true, 'The lock is not held under this hold any more.'),
    held: flag('Whether it was held until now.'),
    now: decidedAt,
  }),
);

const evicted = named(
  'Evicted',
  object({ key, evicted: count('How many holds were ended.'), now: decidedAt }),
);

const traits = named(
  'StoreTraits',
  object({
    clock: oneOf(['store', 'machine', 'estimate'], 'Whose clock decides.'),
    clockErrorMs: { type: 'number', description: 'How many milliseconds that clock may be off.' },
    push: flag('Whether the store sends wake-ups.'),
    queue: flag('Whether the store keeps a queue of waiters.'),
    shared: oneOf(['process', 'machine', 'network'], 'How widely the store can be shared.'),
    durable: flag('Whether locks outlive a restart of the store.'),
    livenessPollMs: orNull(
      'number',
      'How often the first waiters ask whether a holder has died. Null where the store cannot tell.',
    ),
  }),
);

const probe = named(
  'Probe',
  object({
    store: text('The kind of store.'),
    traits: ref('StoreTraits'),
    server: text('Name and version of the server behind the store.'),
    now: time('The time now.'),
    findings: list(
      object({
        level: oneOf(['good', 'note', 'warning'], 'How serious it is.'),
        text: text('A promise that the store keeps or does not keep, as it is configured.'),
      }),
    ),
  }),
);

const lost = named('LostProblem', {
  ...object(
    {
      ...PROBLEM_MEMBERS,
      code: constant('lost', 'The lock is no longer held.'),
      evicted: {
        ...object({ reason: orNull('string', "The operator's reason.") }),
        description: 'An operator ended the hold. Absent when it ended otherwise.',
      },
    },
    ['key', 'requestId', 'evicted'],
  ),
  description: 'The lock is no longer held: it expired, was released or was evicted.',
});

const busy = named('BusyProblem', {
  ...object(
    {
      ...PROBLEM_MEMBERS,
      code: constant('busy', 'The lock is held by another client.'),
      holders: list(ref('Holder'), 'The holders of the lock. Empty if others only wait for it.'),
      freeInMs: large('In how many milliseconds the lock may be free, if it is not renewed.'),
      now: decidedAt,
    },
    ['key', 'requestId'],
  ),
  description: 'The lock is held by another client: its holders, and for how long at most.',
});

/** Adds the named schemas for the routes of this scope, and so to the document. */
export function addSchemas(app: FastifyInstance): void {
  const locks = [holder, waiter, lock, lockPage, grant, renewed, released, evicted];
  const others = [traits, probe, busy, lost];
  for (const schema of [...requestSchemas, ...locks, ...others, ...historySchemas, ...eventSchemas])
    app.addSchema(schema);
}

/** A route of `/v2`: it answers with problems, its own and those that every route has. */
export function described(description: Description): Description {
  const { body, problems = [] } = description;
  const common: readonly ProblemCode[] = body ? [...COMMON_PROBLEMS, ...BODY_PROBLEMS] : COMMON_PROBLEMS;
  return { ...description, problems: [...common, ...problems] };
}

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
    event('gone', ref('Lock'), 'It has no holders or waiters any more.'),
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

const eventSchemas = [lockEvent, inboxEvent];
