/**
 * `apply`: a batch of commands as one statement. It reads the committed rows, decides, and writes all changed rows at once,
 * in key order, each only if it is still at the decision that was read. A row that another transaction changed meanwhile
 * is locked by then, and is read and decided again. So batches never deadlock, times rise from decision to decision of a
 * key, and a command that changes nothing takes no lock and writes nothing.
 */
import { STATE_VERSION } from '../../../protocol/index.js';
import { BATCH_FAST_PATH, singleFastPath } from './fast-path.js';
import { NOW_MS, SETTINGS } from './records.js';

const COLUMNS = ['version', 'token', 'decision', 'holders', 'rests', 'waiters', 'ended', 'delete_after'];
const NEXT = COLUMNS.map((column) => `${column} = excluded.${column}`).join(', ');

/** A channel name has at most 63 bytes: a longer inbox is hashed. `channelOf` in wake-listener.ts does the same. */
export const CHANNEL_PREFIX = 'holdfast_';
export const CHANNEL_BYTES_MAX = 63;
/** The server's limit is 8,000 bytes. */
const HINT_BYTES_MAX = 7_900;

export const writeSql = (schema: string): string => `
-- Writes the rows that are still at the decision they were read at, absent ones at 0. Returns the keys of the others,
-- or null: their rows are locked now. One statement in key order, insertions included: two batches that insert some
-- rows and then lock others could deadlock.
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

-- Sends the wake-ups, on commit.
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

-- Deletes some expired records. Locked rows are skipped.
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

/** The longest wait for a row that another transaction has locked. */
const LOCK_TIMEOUT = '200ms';

const READ_COMMITTED = "(current_setting('transaction_isolation') = 'read committed')";

/** Adds the row of the previous key to the rows to write, if it changed. */
const KEEP_CHANGED = `
        IF row_changed THEN
          next_rows := next_rows || r;
          next_keys := next_keys || r.key;
          decisions_before := decisions_before || decision_before::text;
        END IF;`;

/** Inlined: a function call per command would cost more than the body. */
const DECIDE = (schema: string): string => `
        d := ${schema}._decide(r, c, now_ms);
        reply := d.reply;
        changed := d.changed;
        IF changed THEN
          r.version := ${STATE_VERSION};
          r.token := d.token;
          r.decision := d.decision;
          r.holders := to_jsonb(d.holders);
          r.rests := to_jsonb(d.rests);
          r.waiters := to_jsonb(d.waiters);
          r.ended := to_jsonb(d.ended);
          r.delete_after := ${schema}._delete_after(r);
        END IF;
        FOREACH wake IN ARRAY d.wakes LOOP
          wakes := wakes || (wake || jsonb_build_object('key', r.key));
        END LOOP;`;

const batch = (schema: string): string => `
CREATE OR REPLACE FUNCTION ${schema}._apply_batch(commands jsonb, hints boolean) RETURNS jsonb
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  replies jsonb[] := array_fill(NULL::jsonb, ARRAY[jsonb_array_length(commands)]);
  pending text[];
  said record;
  now_ms bigint;
  r ${schema}.records;
  d ${schema}._draft;
  c jsonb;
  reply jsonb;
  block jsonb;
  changed boolean;
  row_changed boolean;
  decision_before bigint;
  next_rows ${schema}.records[];
  next_keys text[];
  decisions_before text[];
  wake jsonb;
  wakes jsonb[] := '{}';
BEGIN
  LOOP
    next_rows := '{}';
    next_keys := '{}';
    decisions_before := '{}';
    now_ms := NULL;
    r := NULL;
    row_changed := false;
    FOR said IN
      SELECT e.i::integer AS i, e.c AS command, e.c->>'key' AS key, stored AS row
      FROM jsonb_array_elements(commands) WITH ORDINALITY AS e(c, i)
      -- LATERAL and LIMIT: one index look-up per command, whatever the planner believes of the table's size.
      LEFT JOIN LATERAL (SELECT * FROM ${schema}.records WHERE records.key = e.c->>'key' LIMIT 1) AS stored ON true
      WHERE pending IS NULL OR e.c->>'key' = ANY (pending)
      ORDER BY e.c->>'key' COLLATE "C", e.i
    LOOP
      -- Read after the rows: every change in them was decided before.
      IF now_ms IS NULL THEN now_ms := ${NOW_MS}; END IF;
      c := said.command;
      IF r.key IS DISTINCT FROM said.key THEN${KEEP_CHANGED}
        row_changed := false;
        r := said.row;
        IF r.key IS NULL THEN
          r := ROW(said.key, ${STATE_VERSION}, 0, 0, '[]', '[]', '[]', '[]', 0)::${schema}.records;
        END IF;
        decision_before := r.decision;
      END IF;
      IF r.version NOT BETWEEN 1 AND ${STATE_VERSION} THEN
        replies[said.i] := jsonb_build_object('error', 'version', 'version', r.version);
        CONTINUE;
      END IF;
      reply := NULL;
      changed := false;${BATCH_FAST_PATH}
      IF reply IS NULL THEN${DECIDE(schema)}
      END IF;
      row_changed := row_changed OR changed;
      replies[said.i] := reply;
    END LOOP;${KEEP_CHANGED}
    EXIT WHEN cardinality(next_rows) = 0;
    pending := ${schema}._write(next_rows, next_keys, decisions_before);
    EXIT WHEN pending IS NULL;
    -- These rows are locked now. Decisions on their old versions are void, and so are their wake-ups.
    wakes := ARRAY(SELECT w FROM unnest(wakes) AS w WHERE w->>'key' <> ALL (pending));
  END LOOP;
  IF hints AND cardinality(wakes) > 0 THEN PERFORM ${schema}._tell(wakes); END IF;
  RETURN to_jsonb(replies);
END $$;
`;

export const applySql = (schema: string): string => `${batch(schema)}
CREATE OR REPLACE FUNCTION ${schema}.apply(
  commands jsonb, clean_up integer DEFAULT 0, hints boolean DEFAULT true
) RETURNS jsonb
LANGUAGE plpgsql ${SETTINGS}
SET lock_timeout = '${LOCK_TIMEOUT}'
AS $$
#variable_conflict use_column
DECLARE
  c jsonb := CASE WHEN commands->1 IS NULL AND ${READ_COMMITTED} THEN commands->0 END;
  now_ms bigint;
  answers jsonb;
  inbox text;
BEGIN${singleFastPath(schema)}
  IF answers IS NULL OR clean_up > 0 THEN
    -- Under stricter isolation levels, waiting for a row ends in an error: do nothing and say so.
    IF NOT ${READ_COMMITTED} THEN
      RETURN jsonb_build_object('isolation', current_setting('transaction_isolation'));
    END IF;
    IF answers IS NULL THEN answers := ${schema}._apply_batch(commands, hints); END IF;
    IF clean_up > 0 THEN PERFORM ${schema}._clean_up(clean_up); END IF;
  END IF;
  RETURN answers;
END $$;
`;
