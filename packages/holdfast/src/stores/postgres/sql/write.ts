/** What a batch leaves: its rows, its hints, and fewer records that may go. */
import { NOW_MS } from './time.js';

const COLUMNS = ['version', 'token', 'decision', 'holders', 'rests', 'waiters', 'ended', 'delete_after'];
const NEXT = COLUMNS.map((column) => `${column} = excluded.${column}`).join(', ');

/** A channel's name has at most 63 bytes, so a longer inbox goes by its hash. See listening.ts. */
export const CHANNEL_PREFIX = 'holdfast_';
export const CHANNEL_BYTES_MAX = 63;
/** The server takes less than 8,000 bytes. */
const HINT_BYTES_MAX = 7_900;

export const writeSql = (schema: string): string => `
-- Writes the rows that are still at the decision they were read at, absent ones at 0. Gives back the keys of the
-- others, or null: their rows are locked now. In one statement and in key order, insertions too: two batches that
-- inserted some and then locked others could wait for each other.
CREATE OR REPLACE FUNCTION ${schema}._write(next_rows ${schema}.records[], keys text[], decisions text[]) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
  expected jsonb;
  written text[];
BEGIN
  IF cardinality(keys) = 1 THEN
    INSERT INTO ${schema}.records SELECT * FROM unnest(next_rows)
    ON CONFLICT (key) DO UPDATE SET ${NEXT} WHERE records.decision = decisions[1]::bigint;
    IF FOUND THEN RETURN NULL; ELSE RETURN keys; END IF;
  END IF;
  expected := jsonb_object(keys, decisions);
  WITH done AS (
    INSERT INTO ${schema}.records SELECT * FROM unnest(next_rows) AS next ORDER BY next.key
    ON CONFLICT (key) DO UPDATE SET ${NEXT} WHERE records.decision = (expected->>records.key)::bigint
    RETURNING key
  ) SELECT array_agg(done.key) INTO written FROM done;
  IF cardinality(written) = cardinality(keys) THEN RETURN NULL; END IF;
  RETURN ARRAY(SELECT k FROM unnest(keys) AS k WHERE written IS NULL OR k <> ALL (written));
END $$;

-- Tells whoever is named, once all is committed.
CREATE OR REPLACE FUNCTION ${schema}._tell(wakes jsonb[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  wake jsonb;
  channel text;
  hint text;
BEGIN
  FOREACH wake IN ARRAY wakes LOOP
    channel := '${CHANNEL_PREFIX}' || (wake->>'inbox');
    IF octet_length(channel) > ${CHANNEL_BYTES_MAX} THEN channel := '${CHANNEL_PREFIX}' || md5(wake->>'inbox'); END IF;
    hint := (wake->>'why') || ' ' || (wake->>'key');
    IF octet_length(hint) <= ${HINT_BYTES_MAX} THEN PERFORM pg_notify(channel, hint); END IF;
  END LOOP;
END $$;

-- Deletes some of the records that may go. Those that somebody works on stay.
CREATE OR REPLACE FUNCTION ${schema}._clean_up(p_count integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  now_ms bigint := ${NOW_MS};
BEGIN
  DELETE FROM ${schema}.records WHERE key = ANY (ARRAY(
    SELECT key FROM ${schema}.records WHERE delete_after <= now_ms
    ORDER BY delete_after LIMIT p_count FOR UPDATE SKIP LOCKED));
END $$;
`;
