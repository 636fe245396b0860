/**
 * The layout of the table `distributed_locks`, which applications use through functions of their own:
 *
 *   lock_name     varchar(255)  primary key
 *   holder_id     varchar(255)  `acquire_lock` gives the lock to the same holder again
 *   acquired_at   timestamptz
 *   expires_at    timestamptz   later than `acquired_at`. Taken when absent or `expires_at < now()`
 *   metadata      jsonb         replaced by every `acquire_lock`
 *
 * `acquire_lock` deletes an expired row and inserts another, so our column is empty there; `release_lock` deletes the row
 * of a holder, and `extend_lock` moves its expiry. The clock is the server's, as it is here: nothing is added for clocks
 * that differ. `holder_id` of ours contains a hash of the hold, so nobody else has it.
 */
import type { Holder, Rest } from '../../../protocol/index.js';
import { bareNameOf, boundedMs, FAR_MS, keyOfBareName } from '../../compare-and-swap/foreign.js';
import { FREE_INSTANCE as FREE, secretOf } from '../../compare-and-swap/lock-service-central.js';
import {
  FREE_MS,
  jsonColumn,
  OWN_SHAPE,
  plainColumn,
  type Row,
  type TableLayout,
  timeColumn,
} from './layout.js';

const NAME = 'distributed-locks';
/** The length of `holder_id`, in letters. */
const HOLDER_MAX = 255;
/** Texts that `jsonb` does not take, as JSON escapes them: a zero byte, and half of a pair. */
const NOT_IN_JSONB = /\\u(?:0000|d[89a-f])/i;

export const distributedLocks: TableLayout = {
  name: NAME,
  table: 'distributed_locks',
  keyColumn: 'lock_name',
  columns: {
    holder_id: plainColumn('holder_id'),
    acquired_at: timeColumn('acquired_at'),
    expires_at: timeColumn('expires_at'),
    metadata: jsonColumn('metadata'),
  },
  // A change of the metadata alone is kept while the holder stays the same.
  replacing: (next, { holder_id, metadata = null }) =>
    next.holder_id === holder_id ? { ...next, metadata } : next,
  create: (table) => `CREATE TABLE IF NOT EXISTS ${table} (
  lock_name varchar(255) PRIMARY KEY,
  holder_id varchar(255) NOT NULL,
  acquired_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  metadata jsonb DEFAULT '{}',
  CONSTRAINT valid_expiry CHECK (expires_at > acquired_at)
);
CREATE INDEX IF NOT EXISTS idx_locks_expires ON ${table} (expires_at);
CREATE INDEX IF NOT EXISTS idx_locks_holder ON ${table} (holder_id);`,
  keySql: `'${keyOfBareName('')}' || r.lock_name`,
  ownSql: `r.holder_id ~ '^${OWN_SHAPE}( |$)'`,
  freeSql: `r.holder_id = '${FREE}' AND r.expires_at < clock_timestamp()`,
  expendableSql: `r.expires_at < clock_timestamp() - interval '${FREE_MS} milliseconds'`,
  nameOf: (key) => bareNameOf(key, NAME),
  held: (occupant) =>
    columnsOf(holderOf(occupant), occupant.acquiredAt, occupant.expiresAt, metadataOf(occupant)),
  // The two times have to differ.
  free: (expiredMs) => columnsOf(FREE, expiredMs - 1_000, expiredMs, '{}'),
  deciding: (row) => [row.holder_id, microseconds(row.acquired_at), microseconds(row.expires_at)],
  read({ holder_id: owner, acquired_at, expires_at }) {
    const until = microseconds(expires_at);
    if (typeof owner !== 'string' || until === null) return null;
    const acquiredAt = boundedMs(Math.floor((microseconds(acquired_at) ?? 0) / 1_000));
    // Taken only after that microsecond.
    return { owner, acquiredAt, expiresAt: boundedMs(Math.floor(until / 1_000) + 1) };
  },
};

function columnsOf(holder: string, acquiredMs: number, expiresMs: number, metadata: string): Row {
  return {
    holder_id: holder,
    // The table refuses a lock that ends before it begins, such as one that a renewal has cut short.
    acquired_at: new Date(Math.min(acquiredMs, expiresMs - 1)).toISOString(),
    expires_at: new Date(expiresMs).toISOString(),
    metadata,
  };
}

function holderOf(occupant: Holder | Rest): string {
  const holder = `${secretOf(occupant)} ${occupant.owner}`;
  return holder.length <= HOLDER_MAX ? holder : [...holder].slice(0, HOLDER_MAX).join('');
}

function metadataOf(occupant: Holder | Rest): string {
  const text = 'metadata' in occupant ? occupant.metadata : null;
  return text === null || NOT_IN_JSONB.test(text) ? '{}' : text;
}

/** Of a time in UTC, with a zone or without. Null where there is none; without end, or too far for a `Date`, the last. */
function microseconds(time: string | null | undefined): number | null {
  if (typeof time !== 'string') return null;
  if (/BC$|^-/.test(time)) return 0;
  const [, seconds = '', fraction = ''] = /^([^.]*?)(?:\.(\d+))?Z?$/.exec(time) ?? [];
  const ms = Date.parse(`${seconds}Z`);
  return Number.isNaN(ms) ? FAR_MS * 1_000 : ms * 1_000 + Number(fraction.padEnd(6, '0'));
}
