/**
 * The same locks from plain SQL, for psql and other languages: a holder is identified by a name of its own choice.
 *
 * These functions decide nothing. They look up the hold of that name, with the row locked, and send the command through
 * `apply`: holders of the library and of plain SQL exclude each other. They do not queue: a caller that gets `false` calls
 * again. Inside a longer transaction they take effect at its end, and the row stays locked until then: keep it short.
 *
 * Arguments are checked with the limits of the library.
 */
import { TTL_MS_MAX } from '../../../protocol/durations.js';
import { STATE_VERSION } from '../../../protocol/index.js';
import { KEY_BYTES_MAX, METADATA_BYTES_MAX, OWNER_BYTES_MAX } from '../../../protocol/names.js';
import { quoteName } from './names.js';
import { NOW_MS, SETTINGS } from './records.js';

/** How many expired records a release deletes. */
const CLEAN_UP = 4;

const TTL_SECONDS_MAX = TTL_MS_MAX / 1_000;

export function plainSql(name: string): string {
  const schema = quoteName(name);
  return [
    plainChecks(schema),
    lookUp(schema),
    acquire(schema),
    release(schema),
    extend(schema),
    token(schema),
  ].join('\n');
}

/** The hold of a holder's name: its present hold, or a new one with the next number after all ended holds. */
function lookUp(schema: string): string {
  return `
-- Locks the row, so that nothing changes between this read and the command.
CREATE FUNCTION ${schema}._plain_hold(p_key text, p_owner text, p_make boolean, OUT hold jsonb, OUT held boolean)
LANGUAGE plpgsql AS $plain$
DECLARE
  v_record ${schema}.records;
  v_process text := 'sql:' || p_owner;
  v_now bigint;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'Locks need the latest committed data, but this transaction reads an older snapshot.'
      USING ERRCODE = 'feature_not_supported', HINT = 'Begin it with ISOLATION LEVEL READ COMMITTED.';
  END IF;
  held := false;
  LOOP
    SELECT * INTO v_record FROM ${schema}.records WHERE key = p_key FOR UPDATE;
    EXIT WHEN FOUND;
    IF NOT p_make THEN
      RETURN;
    END IF;
    INSERT INTO ${schema}.records (key) VALUES (p_key) ON CONFLICT (key) DO NOTHING;
  END LOOP;
  IF v_record.version NOT BETWEEN 1 AND ${STATE_VERSION} THEN
    RAISE EXCEPTION 'The record of % has format %, and these functions know formats up to ${STATE_VERSION}.',
      quote_literal(p_key), v_record.version
      USING ERRCODE = 'feature_not_supported', HINT = 'A newer Holdfast wrote it: run its migration.';
  END IF;
  -- Read after waiting for the row.
  v_now := ${NOW_MS};
  SELECT holder -> 'hold' INTO hold FROM unnest(${schema}._holders(v_record)) AS holder
    WHERE holder #>> '{hold,process}' = v_process AND (holder ->> 'expiresAt')::bigint > v_now;
  IF FOUND THEN
    held := true;
    RETURN;
  END IF;
  SELECT jsonb_build_object('process', v_process, 'number', coalesce(max(number), 0) + 1) INTO hold FROM (
    SELECT (holder #>> '{hold,number}')::bigint AS number FROM unnest(${schema}._holders(v_record)) AS holder
      WHERE holder #>> '{hold,process}' = v_process
    UNION ALL
    SELECT (mark ->> 'number')::bigint FROM unnest(${schema}._marks(v_record)) AS mark
      WHERE mark ->> 'process' = v_process
  ) AS numbers;
END
$plain$;

CREATE FUNCTION ${schema}._plain_apply(p_command jsonb, p_clean_up integer DEFAULT 0) RETURNS jsonb
LANGUAGE plpgsql AS $plain$
DECLARE
  v_reply jsonb := ${schema}.apply(jsonb_build_array(p_command), p_clean_up)::jsonb -> 0;
BEGIN
  IF v_reply ->> 'kind' IS NULL THEN
    RAISE EXCEPTION 'The lock % was left as it is: %', quote_literal(p_command ->> 'key'), v_reply
      USING ERRCODE = 'feature_not_supported';
  END IF;
  RETURN v_reply;
END
$plain$;`;
}

function acquire(schema: string): string {
  return `
CREATE FUNCTION ${schema}.acquire_lock(
  p_lock_name text,
  p_holder_id text,
  p_ttl_seconds integer DEFAULT 30,
  p_metadata jsonb DEFAULT '{}',
  p_namespace text DEFAULT 'default'
) RETURNS boolean
LANGUAGE plpgsql ${SETTINGS} AS $plain$
DECLARE
  v_key text := ${schema}._plain_key(p_lock_name, p_namespace);
  v_owner text := ${schema}._plain_owner(p_holder_id);
  v_ttl_ms bigint := ${schema}._plain_ttl_ms(p_ttl_seconds, 'p_ttl_seconds');
  v_metadata text := ${schema}._plain_metadata(p_metadata);
  v_hold jsonb := (${schema}._plain_hold(v_key, v_owner, true)).hold;
  v_reply jsonb;
BEGIN
  v_reply := ${schema}._plain_apply(jsonb_build_object(
    'kind', 'claim', 'key', v_key, 'hold', v_hold, 'owner', v_owner, 'permits', 1, 'capacity', 1,
    'ttlMs', v_ttl_ms, 'queue', false, 'inbox', NULL, 'metadata', v_metadata));
  IF v_reply ->> 'kind' <> 'granted' THEN
    RETURN false;
  END IF;
  -- The holder had it already: extend, never shorten.
  IF (v_reply ->> 'expiresAt')::bigint < (v_reply ->> 'now')::bigint + v_ttl_ms THEN
    v_reply := ${schema}._plain_apply(jsonb_build_object(
      'kind', 'renew', 'key', v_key, 'hold', v_hold, 'ttlMs', v_ttl_ms, 'block', false));
  END IF;
  RETURN v_reply ->> 'kind' <> 'lost';
END
$plain$;
COMMENT ON FUNCTION ${schema}.acquire_lock(text, text, integer, jsonb, text) IS
  'Takes the lock for a holder, or extends it if that holder has it. False: another has it, or others wait for it.';`;
}

function release(schema: string): string {
  return `
CREATE FUNCTION ${schema}.release_lock(p_lock_name text, p_holder_id text, p_namespace text DEFAULT 'default')
RETURNS boolean
LANGUAGE plpgsql ${SETTINGS} AS $plain$
DECLARE
  v_key text := ${schema}._plain_key(p_lock_name, p_namespace);
  v_found record := ${schema}._plain_hold(v_key, ${schema}._plain_owner(p_holder_id), false);
BEGIN
  IF NOT v_found.held THEN
    RETURN false;
  END IF;
  RETURN (${schema}._plain_apply(jsonb_build_object(
    'kind', 'release', 'key', v_key, 'hold', v_found.hold, 'minHoldMs', 0), ${CLEAN_UP}) ->> 'held')::boolean;
END
$plain$;
COMMENT ON FUNCTION ${schema}.release_lock(text, text, text) IS
  'Gives the lock back. False: this holder does not have it, and nothing was done.';`;
}

function extend(schema: string): string {
  return `
CREATE FUNCTION ${schema}.extend_lock(
  p_lock_name text,
  p_holder_id text,
  p_additional_seconds integer,
  p_namespace text DEFAULT 'default'
) RETURNS boolean
LANGUAGE plpgsql ${SETTINGS} AS $plain$
DECLARE
  v_key text := ${schema}._plain_key(p_lock_name, p_namespace);
  v_ttl_ms bigint := ${schema}._plain_ttl_ms(p_additional_seconds, 'p_additional_seconds');
  v_found record := ${schema}._plain_hold(v_key, ${schema}._plain_owner(p_holder_id), false);
BEGIN
  IF NOT v_found.held THEN
    RETURN false;
  END IF;
  RETURN ${schema}._plain_apply(jsonb_build_object(
    'kind', 'renew', 'key', v_key, 'hold', v_found.hold, 'ttlMs', v_ttl_ms, 'block', false)) ->> 'kind' = 'renewed';
END
$plain$;
COMMENT ON FUNCTION ${schema}.extend_lock(text, text, integer, text) IS
  'Extends the lock to this many seconds from now, and never shortens it. False: this holder does not have it.';`;
}

/** VOLATILE: it must see what `acquire_lock` did in the same statement. */
function token(schema: string): string {
  return `
CREATE FUNCTION ${schema}.lock_token(p_lock_name text, p_holder_id text, p_namespace text DEFAULT 'default')
RETURNS bigint
LANGUAGE sql VOLATILE ${SETTINGS} AS $plain$
  SELECT (holder ->> 'token')::bigint
  FROM ${schema}.records AS records CROSS JOIN LATERAL unnest(${schema}._holders(records)) AS holder
  WHERE records.key = ${schema}._plain_key(p_lock_name, p_namespace)
    AND holder #>> '{hold,process}' = 'sql:' || ${schema}._plain_owner(p_holder_id)
    AND (holder ->> 'expiresAt')::bigint > ${NOW_MS}
$plain$;
COMMENT ON FUNCTION ${schema}.lock_token(text, text, text) IS
  'The fencing token of the lock that this holder has: higher than that of every holder before it. Null without it.';`;
}

function plainChecks(schema: string): string {
  return `
CREATE FUNCTION ${schema}._plain_text(p_text text, p_what text, p_bytes_max integer) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $plain$
BEGIN
  IF p_text IS NULL OR p_text = '' THEN
    RAISE EXCEPTION 'The % is empty: give one.', p_what USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- There a letter is some bytes, which can be neither checked nor compared with another spelling.
  IF p_text ~ '[^\\u0001-\\u007f]' AND current_setting('server_encoding') = 'SQL_ASCII' THEN
    RAISE EXCEPTION 'The % has letters beyond ASCII, which functions cannot compare in a database with the encoding SQL_ASCII: use others.',
      p_what USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF p_text ~ '[\\u0001-\\u001f\\u007f-\\u009f]' THEN
    RAISE EXCEPTION 'The % has control characters: leave them out.', p_what USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- Two spellings of one letter are one name. Other encodings have one spelling only, and no normalize().
  IF p_text ~ '[^ -~]' AND current_setting('server_encoding') = 'UTF8' THEN
    p_text := normalize(p_text, NFC);
  END IF;
  IF octet_length(p_text) > p_bytes_max THEN
    RAISE EXCEPTION 'The % is longer than % bytes: shorten or hash it.', p_what, p_bytes_max
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN p_text;
END
$plain$;

CREATE FUNCTION ${schema}._plain_key(p_lock_name text, p_namespace text) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $plain$
BEGIN
  IF p_namespace IS NULL OR p_namespace !~ '^[A-Za-z0-9_.-]{1,64}$' THEN
    RAISE EXCEPTION 'The namespace % is invalid: use 1 to 64 letters, digits, dots, dashes or underscores.',
      quote_nullable(left(p_namespace, 80)) USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN p_namespace || '/' || ${schema}._plain_text(p_lock_name, 'lock name', ${KEY_BYTES_MAX});
END
$plain$;

CREATE FUNCTION ${schema}._plain_ttl_ms(p_seconds integer, p_what text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $plain$
BEGIN
  IF p_seconds IS NULL OR p_seconds NOT BETWEEN 1 AND ${TTL_SECONDS_MAX} THEN
    RAISE EXCEPTION '% is %, but has to be a whole number of seconds from 1 to ${TTL_SECONDS_MAX}.',
      p_what, quote_nullable(p_seconds) USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN p_seconds * 1000::bigint;
END
$plain$;

CREATE FUNCTION ${schema}._plain_metadata(p_metadata jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $plain$
BEGIN
  IF p_metadata IS NULL OR p_metadata = '{}' THEN
    RETURN NULL;
  END IF;
  IF jsonb_typeof(p_metadata) <> 'object' THEN
    RAISE EXCEPTION 'The metadata has to be a JSON object.' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF octet_length(p_metadata::text) > ${METADATA_BYTES_MAX} THEN
    RAISE EXCEPTION 'The metadata is longer than ${METADATA_BYTES_MAX} bytes: store a reference instead.'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN p_metadata::text;
END
$plain$;

CREATE FUNCTION ${schema}._plain_owner(p_holder_id text) RETURNS text
LANGUAGE sql IMMUTABLE AS $plain$
  SELECT ${schema}._plain_text(p_holder_id, 'holder id', ${OWNER_BYTES_MAX})
$plain$;`;
}
