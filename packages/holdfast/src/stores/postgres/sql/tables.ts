/**
 * The table: one row a key. Lists are JSON in the shape of `State`; times are milliseconds of the server's clock.
 *
 * Rows are rewritten with every grant and release, so pages keep room for the next version beside the last one, and
 * `delete_after`, the only indexed column that changes, moves rarely: otherwise every update would touch both indexes.
 */
import { STATE_VERSION } from '../../../protocol/index.js';

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
