/**
 * The table: one row per key. Lists are JSON in the shape of `State`; times are milliseconds of the server's clock.
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
 * Settings of every function that is called from outside, and of what it calls. A fixed search path, whatever the session
 * has. No sequential scans: a connection keeps the plan that it made while the table was small.
 */
export const SETTINGS = 'SET search_path = pg_catalog, pg_temp SET enable_seqscan = off';

/**
 * `delete_after` is indexed. While the indexed columns stay the same, PostgreSQL rewrites the row within its page without
 * touching an index. So it is `expendableAt` rounded up, and changes a few times a minute at most.
 */
const GRID_MS = 10_000;

export const onGrid = (ms: string): string => `((${ms}) / ${GRID_MS} + 1) * ${GRID_MS}`;

/** How far above the needed value it may stay. */
export const FAR_MS = 30_000;

export const tablesSql = (schema: string): string => `
CREATE TABLE IF NOT EXISTS ${schema}.records (
  key text COLLATE "C" PRIMARY KEY,
  version integer NOT NULL DEFAULT ${STATE_VERSION},
  token bigint NOT NULL DEFAULT 0,
  decision bigint NOT NULL DEFAULT 0,
  holders jsonb NOT NULL DEFAULT '[]',
  rests jsonb NOT NULL DEFAULT '[]',
  waiters jsonb NOT NULL DEFAULT '[]',
  ended jsonb NOT NULL DEFAULT '[]',
  delete_after bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

CREATE INDEX IF NOT EXISTS records_delete_after ON ${schema}.records (delete_after);
`;
