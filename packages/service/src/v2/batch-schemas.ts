/** The commands of the store protocol as JSON, and their replies. */
import type { Limits } from '../http/limits.js';
import {
  closed,
  constant,
  count,
  flag,
  large,
  list,
  named,
  object,
  orNull,
  ref,
  type Schema,
  text,
  time,
} from '../openapi/schema.js';
import { PROCESS, STORED_KEY_BYTES_MAX } from './names.js';
import { PERMITS, SAFE } from './request-schemas.js';

/** Valid Unicode without control characters: stores differ in how they keep others. */
const PLAIN = '^[^\\p{Cc}\\p{Cs}]*$';
const key = text('Namespace, slash, name.', { minLength: 1, maxLength: STORED_KEY_BYTES_MAX });

const holdId = named(
  'HoldId',
  closed({
    process: text('The random id of the process. A secret. `v1:` needs the right `admin`.', {
      // Another service with this one as its store sends the holds of its `/v1`.
      pattern: `^(v1:)?${PROCESS}$`,
    }),
    number: large('Rises with every hold of the process.', { ...SAFE, minimum: 1 }),
  }),
);

function command(kind: string, members: Readonly<Record<string, Schema>>, optional: readonly string[] = []) {
  const name = `${kind[0]?.toUpperCase()}${kind.slice(1)}Command`;
  return named(name, closed({ kind: constant(kind, 'The kind of command.'), key, ...members }, optional));
}

/** The named schemas of a batch. Bounded by the limits of the service. */
export function batchSchemas(limits: Limits): readonly Schema[] {
  const ttlMs = large('How long the lock lives without renewal.', { minimum: 1, maximum: limits.ttlMsMax });
  const hold = ref('HoldId');
  const added = closed({
    // A negative addition makes a lease shorter.
    ms: large('Added to the expiry.', { minimum: -limits.ttlMsMax, maximum: limits.ttlMsMax }),
    expiresAt: large('Only if this is the expiry now.', SAFE),
  });
  const commands = [
    command('claim', {
      hold,
      owner: text("The caller's name, for people to read.", { minLength: 1, maxLength: 256, pattern: PLAIN }),
      permits: count('How many permits to take.', PERMITS),
      capacity: count('How many permits there are.', PERMITS),
      ttlMs,
      queue: flag('Whether to take a place in the queue.'),
      inbox: orNull('string', 'Where wake-ups go.', { maxLength: 200, pattern: PLAIN }),
      metadata: orNull('string', 'An object as JSON text.', { maxLength: 4_096, pattern: PLAIN }),
    }),
    command('renew', { hold, ttlMs, block: flag('Whether to reserve more tokens.'), added }, ['added']),
    command('release', {
      hold,
      minHoldMs: large('Keep the lock until this long after the grant.', {
        minimum: 0,
        maximum: limits.ttlMsMax,
      }),
    }),
    command(
      'evict',
      {
        fromToken: large('Ends no hold below this token. Default 0.', SAFE),
        upToToken: large('Ends the holds up to this token.', SAFE),
        reason: orNull('string', 'For the evicted holders, and for the audit log.', {
          ...{ minLength: 1, maxLength: 256, pattern: PLAIN },
        }),
      },
      ['fromToken', 'reason'],
    ),
  ];
  const batch = named(
    'BatchRequest',
    closed({
      commands: {
        type: 'array',
        maxItems: limits.batchCommands,
        items: {
          type: 'object',
          required: ['kind'],
          discriminator: { propertyName: 'kind' },
          oneOf: commands.map(({ $id }) => ref($id)),
        },
      },
    }),
  );
  return [holdId, ...commands, batch, storedHolder, ...replies, failedCommand, batchReplies];
}

function reply(
  kind: string,
  members: Readonly<Record<string, Schema>> = {},
  optional: readonly string[] = [],
) {
  const name = `${kind[0]?.toUpperCase()}${kind.slice(1)}Reply`;
  const decided = {
    now: time('When the store decided this.'),
    doubtMs: { type: 'number', description: 'How much earlier than `now` it may have been.' },
    decision: large('Rises with every change of the key.'),
    othersWait: flag('Whether other processes wait for the key.'),
  };
  return named(
    name,
    object({ kind: constant(kind, 'The decision.'), ...decided, ...members }, ['doubtMs', ...optional]),
  );
}

const token = large('The first token of the grant.');
const tokenLast = large('The last token that was reserved with it.');
const expiresAt = time('When the lock expires if it is not renewed.');

const storedHolder = named(
  'StoredHolder',
  object({
    owner: text("The holder's name, for people to read."),
    permits: count('How many permits it holds.'),
    capacity: count('How many permits there are.'),
    token: large('Its fencing token.'),
    acquiredAt: time('When the lock was granted.'),
    expiresAt,
    metadata: orNull('string', 'JSON as text.'),
    resting: flag('Released before its `minHold` was over.'),
  }),
);

const replies = [
  reply('granted', { token, tokenLast, acquiredAt: time('When the lock was granted.'), expiresAt }),
  reply('busy', {
    holders: list(ref('StoredHolder')),
    freeInMs: large('In how many milliseconds the lock may be free.'),
    position: orNull('integer', 'Place in the queue, from 0.', { format: 'int32' }),
  }),
  reply('withdrawn'),
  reply('renewed', {
    expiresAt,
    block: {
      description: 'The tokens that were reserved, if any.',
      anyOf: [object({ token, tokenLast }), { type: 'null' }],
    },
  }),
  reply(
    'lost',
    {
      evicted: {
        ...object({ reason: orNull('string', "The operator's reason.") }),
        description: 'An operator ended the hold.',
      },
    },
    ['evicted'],
  ),
  reply('released', { held: flag('Whether it was held until now.') }),
  reply('evicted', { count: count('How many holds were ended.') }),
];

const failedCommand = named('FailedCommand', object({ problem: ref('Problem') }));

const batchReplies = named(
  'BatchReplies',
  object({
    replies: list(
      { anyOf: [...replies, failedCommand].map(({ $id }) => ref($id)) },
      'One per command, in order.',
    ),
  }),
);
