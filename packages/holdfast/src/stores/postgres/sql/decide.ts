/** The whole of `decide`, and when a record may go. What both paths through `apply` must equal. */
import { KEEP_MS } from '../../../protocol/index.js';
import { FAR_MS, onGrid } from './time.js';

export const decideSql = (schema: string): string => `
CREATE OR REPLACE FUNCTION ${schema}._others_wait(waiters jsonb[], process_id text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  entry jsonb;
BEGIN
  FOREACH entry IN ARRAY waiters LOOP
    IF entry->'hold'->>'process' IS DISTINCT FROM process_id THEN RETURN true; END IF;
  END LOOP;
  RETURN false;
END $$;

CREATE OR REPLACE FUNCTION ${schema}._decide(r ${schema}.records, c jsonb, now_ms bigint) RETURNS ${schema}._draft
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  d ${schema}._draft;
  head jsonb := r.waiters->0;
BEGIN
  d.token := r.token;
  d.decision := r.decision;
  d.holders := ${schema}._elements(r.holders);
  d.rests := ${schema}._elements(r.rests);
  d.waiters := ${schema}._elements(r.waiters);
  d.ended := ${schema}._elements(r.ended);
  d.changed := false;
  d.called := '{}';
  d.wakes := '{}';
  d := ${schema}._sweep(d, now_ms);
  IF cardinality(d.waiters) > 0 THEN d := ${schema}._call_next(d, now_ms); END IF;
  CASE c->>'kind'
    WHEN 'claim' THEN d := ${schema}._claim(d, c, now_ms);
    WHEN 'renew' THEN d := ${schema}._renew(d, c, now_ms);
    WHEN 'release' THEN d := ${schema}._release(d, c, now_ms);
    WHEN 'evict' THEN d := ${schema}._evict(d, c, now_ms);
    ELSE d.reply := '{"error":"kind"}';
  END CASE;
  IF d.reply ? 'error' THEN
    d.changed := false;
    RETURN d;
  END IF;
  IF cardinality(d.waiters) > 0 THEN
    d := ${schema}._call_next(d, now_ms);
    -- Whoever comes to the head while the key rests has to learn how long: nothing else will wake it.
    IF cardinality(d.rests) > 0 AND d.waiters[1]->'hold' <> head->'hold' THEN d.called := d.called || d.waiters[1]; END IF;
    d.wakes := d.wakes || ${schema}._turns(d, now_ms);
  END IF;
  IF d.changed THEN d.decision := greatest(d.decision + 1, now_ms * 1000); END IF;
  d.reply := d.reply || jsonb_build_object('now', now_ms, 'decision', d.decision,
    'othersWait', ${schema}._others_wait(d.waiters, c->'hold'->>'process'));
  RETURN d;
END $$;

-- All in it over, the clock past its token, and kept long enough.
CREATE OR REPLACE FUNCTION ${schema}._delete_after(r ${schema}.records) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  needed bigint := greatest(r.token / 1000, r.decision / 1000 + ${KEEP_MS}) + 1;
BEGIN
  SELECT greatest(needed, max((entry->>'expiresAt')::bigint) + ${KEEP_MS}) INTO needed
    FROM jsonb_array_elements(r.holders || r.waiters) entry;
  SELECT greatest(needed, max((entry->>'expiresAt')::bigint)) INTO needed FROM jsonb_array_elements(r.rests) entry;
  SELECT greatest(needed, max((entry->>'until')::bigint)) INTO needed FROM jsonb_array_elements(r.ended) entry;
  -- It falls only from far ahead: a row whose end goes up and down should keep it.
  RETURN greatest(${onGrid('needed')}, least(r.delete_after, ${onGrid(`needed + ${FAR_MS}`)}));
END $$;
`;
