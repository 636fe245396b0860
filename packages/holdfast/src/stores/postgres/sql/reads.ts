/**
 * Reads: the functions `read`, `list` and `about`, and the view `locks`. They show no hold ids and inboxes: with those a
 * reader could act for their owners. Expired entries are left out.
 */
import { STATE_VERSION, WINDOW_MS } from '../../../protocol/index.js';
import { quoteName, quoteText } from './names.js';
import { NOW_MS, SETTINGS } from './records.js';

export const readSql = (schema: string): string => `
-- One key without its secrets and expired entries. Null when it has no holders and no waiters.
CREATE OR REPLACE FUNCTION ${schema}._snapshot(r ${schema}.records, now_ms bigint) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  holding jsonb[];
  waiting jsonb;
BEGIN
  IF r.version NOT BETWEEN 1 AND ${STATE_VERSION} THEN
    RETURN jsonb_build_object('key', r.key, 'error', 'version', 'version', r.version);
  END IF;
  holding := ${schema}._live(${schema}._holders(r) || ${schema}._elements(r.rests), now_ms);
  SELECT coalesce(jsonb_agg(jsonb_build_object('owner', e->'owner', 'permits', e->'permits', 'capacity', e->'capacity',
    'since', e->'since', 'woken', coalesce(now_ms < (e->>'wokenAt')::bigint + ${WINDOW_MS}, false)) ORDER BY i), '[]')
    INTO waiting FROM unnest(${schema}._live(${schema}._elements(r.waiters), now_ms)) WITH ORDINALITY AS t(e, i);
  IF cardinality(holding) = 0 AND waiting = '[]' THEN RETURN NULL; END IF;
  RETURN jsonb_build_object('key', r.key, 'now', now_ms, 'token', r.token,
    'holders', ${schema}._holder_views(holding), 'waiters', waiting);
END $$;

CREATE OR REPLACE FUNCTION ${schema}.read(p_key text) RETURNS jsonb
LANGUAGE plpgsql ${SETTINGS} AS $$
DECLARE
  r ${schema}.records;
BEGIN
  SELECT * INTO r FROM ${schema}.records WHERE records.key = p_key;
  IF NOT FOUND THEN RETURN NULL; END IF;
  RETURN ${schema}._snapshot(r, ${NOW_MS});
END $$;

-- A page of keys in order, from the prefix on or after a key. "next" is null at the end.
CREATE OR REPLACE FUNCTION ${schema}.list(p_prefix text, p_after text, p_count integer) RETURNS jsonb
LANGUAGE plpgsql ${SETTINGS} AS $$
DECLARE
  r ${schema}.records;
  snapshot jsonb;
  views jsonb[] := '{}';
  looked integer := 0;
BEGIN
  FOR r IN
    SELECT * FROM ${schema}.records
    WHERE records.key >= coalesce(p_after, p_prefix) AND records.key <> coalesce(p_after, '')
    ORDER BY records.key LIMIT p_count
  LOOP
    IF NOT starts_with(r.key, p_prefix) THEN RETURN jsonb_build_object('views', to_jsonb(views), 'next', NULL); END IF;
    looked := looked + 1;
    IF coalesce(r.process, r.holders::text, r.waiters::text, r.rests::text) IS NOT NULL THEN
      snapshot := ${schema}._snapshot(r, ${NOW_MS});
      IF snapshot IS NOT NULL THEN views := views || snapshot; END IF;
    END IF;
  END LOOP;
  RETURN jsonb_build_object('views', to_jsonb(views), 'next', CASE WHEN looked = p_count THEN r.key END);
END $$;
`;

export function viewsSql(name: string): string {
  const schema = quoteName(name);
  return `
-- Text that is not valid jsonb is shown unchanged: one odd row must not hide all the others.
CREATE FUNCTION ${schema}._metadata_of(p_text text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $view$
BEGIN
  RETURN p_text::jsonb;
EXCEPTION WHEN data_exception THEN
  RETURN to_jsonb(p_text);
END
$view$;

CREATE VIEW ${schema}.locks AS
SELECT
  records.key,
  CASE WHEN strpos(records.key, '/') > 0 THEN split_part(records.key, '/', 1) END AS namespace,
  substr(records.key, strpos(records.key, '/') + 1) AS name,
  entries.role,
  entries.entry ->> 'owner' AS owner,
  (entries.entry ->> 'token')::bigint AS token,
  (entries.entry ->> 'permits')::bigint AS permits,
  (entries.entry ->> 'capacity')::bigint AS capacity,
  to_timestamp(coalesce(entries.entry ->> 'acquiredAt', entries.entry ->> 'since')::double precision / 1000)
    AS acquired_at,
  to_timestamp((entries.entry ->> 'expiresAt')::double precision / 1000) AS expires_at,
  ${schema}._metadata_of(entries.entry ->> 'metadata') AS metadata,
  CASE entries.role WHEN 'waiter' THEN entries.place - 1 END AS position
FROM ${schema}.records AS records
CROSS JOIN LATERAL (
  SELECT live.role, live.entry, row_number() OVER (PARTITION BY live.role ORDER BY live.place) AS place
  FROM (
    SELECT 'holder' AS role, entry, place FROM unnest(${schema}._holders(records)) WITH ORDINALITY AS of (entry, place)
    UNION ALL
    SELECT 'rest', entry, place FROM jsonb_array_elements(records.rests) WITH ORDINALITY AS of (entry, place)
    UNION ALL
    SELECT 'waiter', entry, place FROM jsonb_array_elements(records.waiters) WITH ORDINALITY AS of (entry, place)
  ) AS live
  WHERE (live.entry ->> 'expiresAt')::bigint > ${NOW_MS}
) AS entries;
COMMENT ON VIEW ${schema}.locks IS
  'The holders of each lock, its waiters (position, from 0) and its cool-downs after a release. Read only.';`;
}

const setting = (name: string): string => `current_setting('${name}', true)`;

/** A JSON object, in the shape of `About` in probe.ts. It also works before the migration. */
export function aboutJson(name: string): string {
  return `pg_catalog.json_build_object(
    'now', ${NOW_MS}, 'version', ${setting('server_version')}, 'versionNumber', ${setting('server_version_num')}::integer,
    'encoding', ${setting('server_encoding')}, 'inRecovery', pg_is_in_recovery(),
    'readOnly', ${setting('default_transaction_read_only')}, 'fsync', ${setting('fsync')},
    'fullPageWrites', ${setting('full_page_writes')}, 'synchronousCommit', ${setting('synchronous_commit')},
    'standbys', ${setting('synchronous_standby_names')},
    'walSenders', (SELECT count(*) FROM pg_stat_replication WHERE application_name <> 'pg_basebackup'),
    'isolation', ${setting('default_transaction_isolation')},
    'ready', to_regclass(${quoteText(`${quoteName(name)}.records`)}) IS NOT NULL)`;
}

export function aboutSql(name: string): string {
  return `
CREATE FUNCTION ${quoteName(name)}.about() RETURNS json
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $about$
  SELECT ${aboutJson(name)}
$about$;`;
}
