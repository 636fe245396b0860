/** What plain SQL is given is checked as the library checks it, and refused in words. */

/** As the library checks them; see arguments.ts. */
const KEY_BYTES_MAX = 512;
const OWNER_BYTES_MAX = 256;
const METADATA_BYTES_MAX = 4_096;
const TTL_SECONDS_MAX = 7 * 24 * 3_600;

export function plainChecks(schema: string): string {
  return `
CREATE FUNCTION ${schema}._plain_text(p_text text, p_what text, p_bytes_max integer) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $plain$
BEGIN
  IF p_text IS NULL OR p_text = '' THEN
    RAISE EXCEPTION 'The % is empty: give it one.', p_what USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF p_text ~ '[\\u0001-\\u001f\\u007f-\\u009f]' THEN
    RAISE EXCEPTION 'The % has control characters: leave them out.', p_what USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- Two spellings of one letter are one name. Other encodings have one spelling only, and cannot do this.
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
    RAISE EXCEPTION 'The namespace % is not usable: take 1 to 64 letters, digits, dots, dashes or underscores.',
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
