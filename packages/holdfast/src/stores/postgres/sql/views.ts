/**
 * The view `locks`: who holds, who waits, and what rests. Without hold ids and inboxes: whoever knows those could
 * speak for their owners. What has expired is not shown.
 */
import { quoteName } from './quoting.js';
import { NOW_MS } from './time.js';

export function viewsSql(name: string): string {
  const schema = quoteName(name);
  return `
-- What is no JSON, or none that jsonb can hold, is shown as it is: one odd row must not hide all the others.
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
    SELECT 'holder' AS role, entry, place FROM jsonb_array_elements(records.holders) WITH ORDINALITY AS of (entry, place)
    UNION ALL
    SELECT 'rest', entry, place FROM jsonb_array_elements(records.rests) WITH ORDINALITY AS of (entry, place)
    UNION ALL
    SELECT 'waiter', entry, place FROM jsonb_array_elements(records.waiters) WITH ORDINALITY AS of (entry, place)
  ) AS live
  WHERE (live.entry ->> 'expiresAt')::bigint > ${NOW_MS}
) AS entries;
COMMENT ON VIEW ${schema}.locks IS
  'Who holds a lock, who waits for it (position, from 0), and what a released lock still rests on. For looking only.';`;
}
