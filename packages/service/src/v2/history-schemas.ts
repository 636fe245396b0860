/** The schemas of the history: its answers and queries. */
import { END_KINDS } from '../history/past-holds.js';
import {
  closed,
  count,
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
} from '../openapi/schema.js';
import { STORED_KEY_BYTES_MAX } from './names.js';

const timeOrNull = (description: string): Schema =>
  orNull('integer', `${description} Milliseconds since 1970, by the store's clock.`, { format: 'int64' });
const durationOrNull = (description: string): Schema =>
  orNull('integer', description, { format: 'int64', minimum: 0 });

const pastHold = named(
  'PastHold',
  object({
    key: text('Namespace, slash, name.'),
    owner: orNull('string', 'The holder. Null if only its release went through this service.'),
    token: orNull('integer', 'Its fencing token.', { format: 'int64' }),
    permits: orNull('integer', 'How many permits it held.', { format: 'int32' }),
    capacity: orNull('integer', 'How many permits there were.', { format: 'int32' }),
    acquiredAt: timeOrNull('When the lock was granted.'),
    endedAt: large("When it ended. Milliseconds since 1970, by the store's clock."),
    waitedMs: durationOrNull(
      'How long it was waited for. Null if its acquire was not a request to this service.',
    ),
    heldMs: durationOrNull('How long it was held.'),
    ended: oneOf(
      END_KINDS,
      '`released` by its holder. `evicted` by an operator. `lost`: its holder renewed or released it too late. `expired`: its ' +
        'time was over, and this service saw no renewal and no release. `unknown`: it ended in its time, and this ' +
        'service did not see why, because the request went elsewhere.',
    ),
    by: orNull(
      'string',
      'The principal that evicted it. Null if the eviction was not a request to this service.',
    ),
    reason: orNull('string', 'The reason of the eviction.'),
    seen: oneOf(
      ['requests', 'store'],
      '`requests`: in requests to this service. `store`: in the store, which is read while somebody watches events.',
    ),
  }),
);

const SOURCE = {
  service: text('The service that saw this. Other services on the same store have histories of their own.'),
  since: large('When this service started. Milliseconds since 1970, by its own clock.'),
  now: large("The time now. Milliseconds since 1970, by the store's clock, as far as this service knows it."),
  keptMs: large('How long the history is kept.'),
};

const historyPage = named(
  'HistoryPage',
  object({
    ...SOURCE,
    holds: list(ref('PastHold'), 'The one that ended last comes first.'),
    next: orNull('string', 'The `before` of the next page. Null on the last page.'),
  }),
);

const bucket = named(
  'Bucket',
  object({
    upToMs: durationOrNull('The upper bound. Null for all that took longer.'),
    count: count('How many there were above the bound of the bucket before.'),
  }),
);

const COUNTS = {
  acquired: count('Acquires that were granted.'),
  refused: count('Acquires that ended without the lock.'),
  contended: count('Acquires that found the lock held by others.'),
  released: count('Holds that were released.'),
  expired: count('Holds that expired.'),
  lost: count('Holds that were lost.'),
  evicted: count('Holds that were evicted.'),
  unknown: count('Holds that ended in a way that was not seen.'),
};

const keySummary = named(
  'KeySummary',
  object({
    key: text('Namespace, slash, name.'),
    ...COUNTS,
    waitedMs: large('How long its acquires took together.'),
    longestWaitMs: large('How long the longest of them took.'),
  }),
);

const historySummary = named(
  'HistorySummary',
  object({
    ...SOURCE,
    counts: object(COUNTS),
    waits: list(ref('Bucket'), 'How long acquires took.'),
    holds: list(ref('Bucket'), 'How long locks were held.'),
    contended: list(
      ref('KeySummary'),
      'The keys for which acquires waited or were refused most often, at most 20.',
    ),
    lost: list(ref('KeySummary'), 'The keys with most holds that were lost, evicted or expired, at most 20.'),
    partial: flag(
      'More than 1,000 keys were used in one part of the time: some keys are counted together only.',
    ),
  }),
);

export const historySchemas = [pastHold, historyPage, bucket, keySummary, historySummary];

const namespace = text('Only keys of this namespace.', { maxLength: 64 });
const query = {
  namespace,
  key: text('Only this key: namespace, slash, name.', { maxLength: STORED_KEY_BYTES_MAX }),
  ended: oneOf(END_KINDS, 'Only holds that ended in this way.'),
  limit: text('At most this many holds. Default 100, at most 1,000.', { pattern: '^[1-9][0-9]{0,3}$' }),
  before: text('The `next` of the page before.', { pattern: '^[1-9][0-9]{0,15}$' }),
};
export const historyQuerySchema = closed(query, Object.keys(query));
export const summaryQuerySchema = closed({ namespace }, ['namespace']);
