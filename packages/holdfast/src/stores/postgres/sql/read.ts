/** Looking at keys, without hold ids and inboxes: whoever knows those could speak for their owners. */
import { STATE_VERSION, WINDOW_MS } from '../../../protocol/index.js';
import { NOW_MS } from './time.js';

export const readSql = (schema: string): string => `
-- One key as anybody may see it, without what has expired. Null when nobody holds it and nobody waits for it.
CREATE OR REPLACE FUNCTION ${schema}._snapshot(r ${schema}.records, now_ms bigint) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  holding jsonb[];
  waiting jsonb;
BEGIN
  IF r.version NOT BETWEEN 1 AND ${STATE_VERSION} THEN
    RETURN jsonb_build_object('key', r.key, 'error', 'version', 'version', r.version);
  END IF;
  holding := ${schema}._live(${schema}._elements(r.holders || r.rests), now_ms);
  SELECT coalesce(jsonb_agg(jsonb_build_object('owner', e->'owner', 'permits', e->'permits', 'capacity', e->'capacity',
    'since', e->'since', 'woken', coalesce(now_ms < (e->>'wokenAt')::bigint + ${WINDOW_MS}, false)) ORDER BY i), '[]')
    INTO waiting FROM unnest(${schema}._live(${schema}._elements(r.waiters), now_ms)) WITH ORDINALITY AS t(e, i);
  IF cardinality(holding) = 0 AND waiting = '[]' THEN RETURN NULL; END IF;
  RETURN jsonb_build_object('key', r.key, 'now', now_ms, 'token', r.token,
    'holders', ${schema}._holder_views(holding), 'waiters', waiting);
END $$;

CREATE OR REPLACE FUNCTION ${schema}.read(p_key text) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  r ${schema}.records;
BEGIN
  SELECT * INTO r FROM ${schema}.records WHERE records.key = p_key;
  IF NOT FOUND THEN RETURN NULL; END IF;
  RETURN ${schema}._snapshot(r, ${NOW_MS});
END $$;

-- A page of keys in order, from the prefix on or after the last key looked at. "next" is null at the end.
CREATE OR REPLACE FUNCTION ${schema}.list(p_prefix text, p_after text, p_count integer) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
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
    IF r.holders <> '[]' OR r.waiters <> '[]' OR r.rests <> '[]' THEN
      snapshot := ${schema}._snapshot(r, ${NOW_MS});
      IF snapshot IS NOT NULL THEN views := views || snapshot; END IF;
    END IF;
  END LOOP;
  RETURN jsonb_build_object('views', to_jsonb(views), 'next', CASE WHEN looked = p_count THEN r.key END);
END $$;
`;
