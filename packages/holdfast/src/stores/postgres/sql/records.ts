/**
 * The table: one row per key. Times are milliseconds of the server's clock.
 *
 * The usual case is in columns: one holder or none, and the latest mark of an ended hold. Further holders, cool-downs,
 * waiters, earlier marks and evictions are JSON lists in the shape of `State`, and null if empty. If there are several
 * holders, all of them are in the list.
 *
 * Every grant and release rewrites the row. Pages keep room for the next version of a row (fillfactor), and
 * `delete_after`, the only indexed column that changes, moves rarely: otherwise every update would touch both indexes.
 */
import { STATE_VERSION } from '../../../protocol/index.js';

/**
 * The server's current time in whole milliseconds, not the statement's start. Independent of the search path: `probe`
 * uses it before any function exists.
 */
export const NOW_MS =
  'pg_catalog.floor(extract(epoch FROM clock_timestamp()) OPERATOR(pg_catalog.*) 1000)::bigint';

/**
 * Settings of every function that is called from outside, and of the functions that it calls. The search path is fixed,
 * independent of the session. Sequential scans are off, because a connection keeps the plan that it made while the table
 * was small.
 */
export const SETTINGS = 'SET search_path = pg_catalog, pg_temp SET enable_seqscan = off';

/** The longest wait for a row that another transaction has locked. */
export const LOCK_TIMEOUT = '200ms';
/** The commit of this transaction does not wait for the disk. */
export const NO_SYNC = "set_config('synchronous_commit', 'off', true)";

/**
 * `delete_after` is indexed. While the indexed columns stay the same, PostgreSQL rewrites the row within its page without
 * touching an index. So it is `expendableAt` rounded up, and changes a few times a minute at most.
 */
const GRID_MS = 10_000;

export const onGrid = (ms: string): string => `((${ms}) / ${GRID_MS} + 1) * ${GRID_MS}`;

/** How far above the needed value it may stay. */
export const FAR_MS = 30_000;

/** `previous`: the decision that this one was made on. A row is written only if that is still its last one. */
const COLUMN_TYPES = {
  version: `integer NOT NULL DEFAULT ${STATE_VERSION}`,
  token: 'bigint NOT NULL DEFAULT 0',
  decision: 'bigint NOT NULL DEFAULT 0',
  previous: 'bigint NOT NULL DEFAULT 0',
  delete_after: 'bigint NOT NULL DEFAULT 0',
  process: 'text',
  number: 'bigint',
  owner: 'text',
  permits: 'bigint',
  capacity: 'bigint',
  hold_token: 'bigint',
  inbox: 'text',
  acquired_at: 'bigint',
  expires_at: 'bigint',
  metadata: 'text',
  ended_process: 'text',
  ended_number: 'bigint',
  ended_until: 'bigint',
  holders: 'jsonb',
  rests: 'jsonb',
  waiters: 'jsonb',
  ended: 'jsonb',
  evictions: 'jsonb',
};

export type Column = keyof typeof COLUMN_TYPES;
/** All columns but the key, in the order of the table. */
export const COLUMNS = Object.keys(COLUMN_TYPES) as readonly Column[];

/** The row of a key without a record, all columns but the key. */
export const ABSENT = Object.values(COLUMN_TYPES)
  .map((type) => type.split(' DEFAULT ')[1] ?? `NULL::${type}`)
  .join(', ');

export const tablesSql = (schema: string): string => `
CREATE TABLE IF NOT EXISTS ${schema}.records (
  key text COLLATE "C" PRIMARY KEY,
  ${COLUMNS.map((column) => `${column} ${COLUMN_TYPES[column]}`).join(',\n  ')}
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

CREATE INDEX IF NOT EXISTS records_delete_after ON ${schema}.records (delete_after);

-- Lists are processed as arrays.
CREATE OR REPLACE FUNCTION ${schema}._elements(list jsonb) RETURNS jsonb[]
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN list IS NULL THEN '{}'::jsonb[] ELSE ARRAY(SELECT jsonb_array_elements(list)) END
$$;

CREATE OR REPLACE FUNCTION ${schema}._holders(r ${schema}.records) RETURNS jsonb[]
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN r.process IS NULL THEN ${schema}._elements(r.holders)
    ELSE ARRAY[jsonb_build_object('hold', jsonb_build_object('process', r.process, 'number', r.number),
      'owner', r.owner, 'permits', r.permits, 'capacity', r.capacity, 'token', r.hold_token, 'inbox', r.inbox,
      'acquiredAt', r.acquired_at, 'expiresAt', r.expires_at, 'metadata', r.metadata)] END
$$;

CREATE OR REPLACE FUNCTION ${schema}._marks(r ${schema}.records) RETURNS jsonb[]
LANGUAGE sql IMMUTABLE AS $$
  SELECT ${schema}._elements(r.ended) || CASE WHEN r.ended_process IS NULL THEN '{}'::jsonb[]
    ELSE ARRAY[jsonb_build_object('process', r.ended_process, 'number', r.ended_number, 'until', r.ended_until)] END
$$;
`;
