/**
 * `apply`: a batch of commands as one statement. It reads the committed rows, decides, and writes all changed rows at
 * once, in key order, each only if it is still at the decision that was read. A row that another transaction changed
 * meanwhile is then locked, read and decided again. So batches never deadlock, times rise from decision to decision of a
 * key, and a command that changes nothing takes no lock and writes nothing.
 */
import { STATE_VERSION } from '../../../protocol/index.js';
import { CHANGED, COMMAND, NEXT_ROW, OUTCOME, OUTCOMES, REPLY, singleCommand } from './quick-cases.js';
import { ABSENT, COLUMNS, LOCK_TIMEOUT, NO_SYNC, NOW_MS, SETTINGS } from './records.js';

/** A channel name has at most 63 bytes: a longer inbox is hashed. `channelOf` in wake-listener.ts does the same. */
export const CHANNEL_PREFIX = 'holdfast_';
export const CHANNEL_BYTES_MAX = 63;
/** The server's limit is 8,000 bytes. */
const PAYLOAD_BYTES_MAX = 7_900;

/** Under stricter isolation levels, waiting for a row ends in an error, so `apply` does nothing and returns the level. */
const WRONG_ISOLATION = "jsonb_build_object('isolation', current_setting('transaction_isolation'))";
/** Checks that the transaction has written nothing before, even if the caller says so. */
const IS_OWN_TRANSACTION = 'own_transaction AND pg_current_xact_id_if_assigned() IS NULL';
/**
 * Releases and queued waiters do not wait for the disk. If a crash loses a release, the lock stays held until its ttl
 * ends; a waiter claims again. Later grants write both to the disk. Also, NOTIFY takes a lock of the whole server, which a
 * commit keeps until it is on the disk. Cool-downs do wait for the disk, because they may last longer than the ttl.
 */
const NO_WAIT_FOR_DISK = `PERFORM ${NO_SYNC};`;

const ROW = ['key', ...COLUMNS].join(', ');
/** Writes a row only if it is still at the decision that was read; otherwise locks it. */
const ON_CONFLICT = `ON CONFLICT (key) DO UPDATE SET ${COLUMNS.map((column) => `${column} = excluded.${column}`).join(', ')}
      WHERE records.decision = excluded.previous`;

const helpers = (schema: string): string => `
-- Sends a wake-up, on commit.
CREATE OR REPLACE FUNCTION ${schema}._notify(inbox text, why text, key text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  channel text := '${CHANNEL_PREFIX}' || inbox;
  payload text := why || ' ' || key;
BEGIN
  IF octet_length(channel) > ${CHANNEL_BYTES_MAX} THEN channel := '${CHANNEL_PREFIX}' || md5(inbox); END IF;
  IF octet_length(payload) <= ${PAYLOAD_BYTES_MAX} THEN PERFORM pg_notify(channel, payload); END IF;
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

-- Applies commands of one key in order, whatever the case.
CREATE OR REPLACE FUNCTION ${schema}._decide_all(
  p_key text, stored ${schema}.records, commands jsonb[], now_ms bigint,
  OUT next ${schema}.records, OUT changed boolean, OUT replies text[], OUT wakes jsonb[]
) LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  d ${schema}._draft;
  c jsonb;
BEGIN
  changed := false;
  wakes := '{}';
  IF stored.version NOT BETWEEN 1 AND ${STATE_VERSION} THEN
    replies := array_fill(jsonb_build_object('error', 'version', 'version', stored.version)::text, ARRAY[cardinality(commands)]);
    RETURN;
  END IF;
  next := stored;
  FOREACH c IN ARRAY commands LOOP
    d := ${schema}._decide(next, c, now_ms);
    replies := replies || d.reply::text;
    wakes := wakes || d.wakes;
    CONTINUE WHEN NOT d.changed;
    changed := true;
    next := ${schema}._row(p_key, d, next.delete_after);
  END LOOP;
  next.previous := coalesce(stored.decision, 0);
END $$;

-- A single claim, renewal or release. Its parameters have types: to parse JSON takes longer than to decide.
CREATE OR REPLACE FUNCTION ${schema}.apply_one(
  kind text, key text, process text, number bigint, owner text DEFAULT NULL, permits bigint DEFAULT NULL,
  capacity bigint DEFAULT NULL, "ttlMs" bigint DEFAULT NULL, queue boolean DEFAULT NULL, inbox text DEFAULT NULL,
  metadata text DEFAULT NULL, block boolean DEFAULT NULL, "minHoldMs" bigint DEFAULT NULL,
  clean_up integer DEFAULT 0, hints boolean DEFAULT true, own_transaction boolean DEFAULT false
) RETURNS text
LANGUAGE plpgsql ${SETTINGS}
SET lock_timeout = '${LOCK_TIMEOUT}'
AS $$
#variable_conflict use_column
DECLARE
  is_own boolean := ${IS_OWN_TRANSACTION};
  now_ms bigint;
  answer text;
  woken text;
  command jsonb;
  gives_nothing boolean;
  stored ${schema}.records;
  next ${schema}.records;
  decided record;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN RETURN ${WRONG_ISOLATION}; END IF;
  now_ms := ${NOW_MS};${singleCommand(schema)}
  IF answer IS NOT NULL THEN
    gives_nothing := kind = 'release';
  ELSE
    command := jsonb_build_object('kind', kind, 'key', key, 'hold', jsonb_build_object('process', process, 'number', number),
      'owner', owner, 'permits', permits, 'capacity', capacity, 'ttlMs', "ttlMs", 'queue', queue, 'inbox', inbox,
      'metadata', metadata, 'block', block, 'minHoldMs', "minHoldMs");
    LOOP
      SELECT * INTO stored FROM ${schema}.records WHERE key = apply_one.key;
      -- The clock is read after the row: every change in it was decided before.
      SELECT * INTO decided FROM ${schema}._decide_all(apply_one.key, stored, ARRAY[command], ${NOW_MS});
      EXIT WHEN NOT decided.changed;
      next := decided.next;
      INSERT INTO ${schema}.records (${ROW}) SELECT (next).* ${ON_CONFLICT};
      EXIT WHEN FOUND;
    END LOOP;
    answer := decided.replies[1];
    gives_nothing := kind <> 'renew' AND next.token = coalesce(stored.token, 0)
      AND (next.rests IS NULL OR next.rests = stored.rests);
    IF hints THEN
      PERFORM ${schema}._notify(wake->>'inbox', wake->>'why', apply_one.key) FROM unnest(decided.wakes) AS wake;
    END IF;
  END IF;
  IF is_own AND gives_nothing THEN ${NO_WAIT_FOR_DISK} END IF;
  IF clean_up > 0 THEN PERFORM ${schema}._clean_up(clean_up); END IF;
  RETURN answer;
END $$;
`;

/**
 * All commands in one statement, by the quick cases. The clock is read after the statement's snapshot: every change in the
 * rows was decided before. With `general`, `_decide_all` decides the keys that no quick case covers. Without it, such a
 * key keeps the statement from writing anything.
 */
const statement = (schema: string, general: boolean): string => `
    WITH clock AS MATERIALIZED (SELECT ${NOW_MS} AS now_ms),
    quick AS MATERIALIZED (
      SELECT r.*, ${REPLY} AS reply
      FROM (
        SELECT c.ordinality AS i, c.block, now_ms, outcome, ${CHANGED} AS changed, c.key COLLATE "C" AS key, ${NEXT_ROW}
        FROM clock CROSS JOIN (
          SELECT *, hold->>'process' AS process, (hold->>'number')::bigint AS number${
            general ? ', count(*) OVER (PARTITION BY key COLLATE "C") AS together' : ''
          }
          FROM ROWS FROM (jsonb_to_recordset(commands) AS (${COMMAND})) WITH ORDINALITY${
            general ? '\n          WHERE pending IS NULL OR key = ANY (pending)' : ''
          }
        ) AS c
        -- LATERAL and LIMIT: one index look-up per command, whatever the planner believes of the table's size.
        CROSS JOIN LATERAL (
          SELECT * FROM ${schema}.records WHERE records.key = c.key UNION ALL SELECT c.key, ${ABSENT} LIMIT 1
        ) AS r
        CROSS JOIN LATERAL (
          SELECT ${general ? `CASE WHEN c.together = 1 THEN ${OUTCOME} END` : OUTCOME} AS outcome OFFSET 0
        ) AS judged
        -- OFFSET: otherwise the planner repeats the expressions of these columns in the reply.
        OFFSET 0
      ) AS r CROSS JOIN LATERAL (SELECT r.block) AS c
    ),${general ? generalCases(schema) : ''}
    written AS (
      INSERT INTO ${schema}.records (${ROW})
      SELECT ${ROW} FROM quick WHERE changed ${
        general
          ? 'UNION ALL SELECT (next).* FROM general WHERE changed'
          : 'AND NOT EXISTS (SELECT FROM quick WHERE outcome IS NULL)'
      } ORDER BY key
      ${ON_CONFLICT}
      RETURNING key
    )
    ${general ? answersOfAll(schema) : ANSWERS}`;

/** Aggregates from a sorted subquery: a sort per aggregate takes longer. */
const ANSWERS = `SELECT array_agg(reply), array_agg(key) FILTER (WHERE changed), bool_or(outcome IS NULL), bool_and(outcome = ${OUTCOMES.released}),
      (SELECT array_agg(key) FROM written)
    INTO replies, changes, undecided, only_releases, writes
    FROM (SELECT reply, key, changed, outcome FROM quick ORDER BY i) AS answered;`;

const answersOfAll = (
  schema: string,
): string => `SELECT array_agg(i ORDER BY i), array_agg(reply ORDER BY i), array_agg(answered.key) FILTER (WHERE changed AND written.key IS NULL),
      ${notifyAll(schema)}
    INTO numbers, answers, pending, notified
    FROM (
      SELECT i, reply, key, changed FROM quick WHERE outcome IS NOT NULL
      UNION ALL
      SELECT one.i, one.reply, key, changed FROM general CROSS JOIN LATERAL unnest(numbers, replies) AS one(i, reply)
    ) AS answered LEFT JOIN written ON written.key = answered.key;`;

const generalCases = (schema: string): string => `
    general AS MATERIALIZED (
      SELECT k.key, k.numbers, d.*
      FROM (
        SELECT key, now_ms, array_agg(i ORDER BY i) AS numbers, array_agg(commands->(i::integer - 1) ORDER BY i) AS of_key
        FROM quick WHERE outcome IS NULL GROUP BY key, now_ms
      ) AS k
      LEFT JOIN LATERAL (SELECT records AS stored FROM ${schema}.records WHERE records.key = k.key LIMIT 1) AS r ON true
      CROSS JOIN LATERAL ${schema}._decide_all(k.key, r.stored, k.of_key, k.now_ms) AS d
    ),`;

const notifyAll = (schema: string): string =>
  `(SELECT count(${schema}._notify(wake->>'inbox', wake->>'why', key)) FROM general CROSS JOIN LATERAL unnest(wakes) AS wake
        WHERE hints AND (NOT changed OR key IN (SELECT key FROM written)))`;

export const applySql = (schema: string): string => `${helpers(schema)}
-- Replies are JSON text: a list in the order of the commands. \`repeats\`: a key may occur twice. \`own_transaction\`: the
-- transaction has no other statements, and does not wait for the disk if it only releases.
CREATE OR REPLACE FUNCTION ${schema}.apply(
  commands jsonb, clean_up integer DEFAULT 0, hints boolean DEFAULT true,
  repeats boolean DEFAULT true, own_transaction boolean DEFAULT false
) RETURNS text
LANGUAGE plpgsql ${SETTINGS}
SET lock_timeout = '${LOCK_TIMEOUT}'
AS $$
#variable_conflict use_column
DECLARE
  pending text[];
  numbers bigint[];
  answers text[];
  replies text[];
  changes text[];
  writes text[];
  undecided boolean := true;
  only_releases boolean;
  notified bigint;
  is_own boolean := ${IS_OWN_TRANSACTION};
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN RETURN ${WRONG_ISOLATION}; END IF;
  IF commands->1 IS NULL AND commands->0->>'kind' <> 'evict' AND commands->0->>'added' IS NULL THEN
    RETURN (
      SELECT concat('[', ${schema}.apply_one(kind, key, hold->>'process', (hold->>'number')::bigint, owner, permits, capacity,
        "ttlMs", queue, inbox, metadata, block, "minHoldMs", clean_up, hints, own_transaction), ']')
      FROM jsonb_to_recordset(commands) AS command(${COMMAND}));
  END IF;
  IF NOT repeats THEN${statement(schema, false)}
    IF NOT undecided AND cardinality(changes) IS DISTINCT FROM cardinality(writes) THEN
      pending := ARRAY(SELECT unnest(changes) EXCEPT SELECT unnest(writes));
    END IF;
  END IF;
  -- Rows in \`pending\` are locked now: read and decide again.
  WHILE undecided OR pending IS NOT NULL LOOP
    only_releases := false;${statement(schema, true)}
    FOR n IN 1..coalesce(cardinality(numbers), 0) LOOP
      replies[numbers[n]] := answers[n];
    END LOOP;
    undecided := false;
  END LOOP;
  IF is_own AND only_releases THEN ${NO_WAIT_FOR_DISK} END IF;
  IF clean_up > 0 THEN PERFORM ${schema}._clean_up(clean_up); END IF;
  RETURN concat('[', array_to_string(replies, ',', 'null'), ']');
END $$;
`;
