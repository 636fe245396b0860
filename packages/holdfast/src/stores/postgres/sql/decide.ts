/**
 * The port of `decide` and its draft (protocol/decide.ts, protocol/draft.ts), and `_delete_after`. The fast path must give
 * the same results.
 */
import { KEEP_MS, MARKS_MAX } from '../../../protocol/index.js';
import { FAR_MS, onGrid } from './records.js';

export const draftSql = (schema: string): string => `
DO $$ BEGIN
  CREATE TYPE ${schema}._draft AS (
    token bigint, decision bigint,
    holders jsonb[], rests jsonb[], waiters jsonb[], ended jsonb[],
    changed boolean, called jsonb[], wakes jsonb[], reply jsonb
  );
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;

-- Lists are processed as arrays.
CREATE OR REPLACE FUNCTION ${schema}._elements(list jsonb) RETURNS jsonb[]
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN list = '[]' THEN '{}'::jsonb[] ELSE ARRAY(SELECT jsonb_array_elements(list)) END
$$;

CREATE OR REPLACE FUNCTION ${schema}._live(list jsonb[], now_ms bigint) RETURNS jsonb[]
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  live jsonb[] := '{}';
  entry jsonb;
BEGIN
  FOREACH entry IN ARRAY list LOOP
    IF (entry->>'expiresAt')::bigint > now_ms THEN live := live || entry; END IF;
  END LOOP;
  RETURN live;
END $$;

-- A claim at or below its process's mark is refused, so a waiter there could never be granted: it leaves the queue.
CREATE OR REPLACE FUNCTION ${schema}._mark_ended(d ${schema}._draft, hold jsonb, now_ms bigint) RETURNS ${schema}._draft
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  process_id text := hold->>'process';
  highest bigint := (hold->>'number')::bigint;
  kept jsonb[] := '{}';
  line jsonb[] := '{}';
  marked bigint;
  entry jsonb;
BEGIN
  FOREACH entry IN ARRAY d.ended LOOP
    IF entry->>'process' = process_id THEN marked := (entry->>'number')::bigint;
    ELSE kept := kept || entry;
    END IF;
  END LOOP;
  IF marked = highest THEN RETURN d; END IF;
  FOREACH entry IN ARRAY d.waiters LOOP
    IF entry->'hold'->>'process' <> process_id OR (entry->'hold'->>'number')::bigint > highest THEN
      line := line || entry;
    END IF;
  END LOOP;
  d.waiters := line;
  d.changed := true;
  d.ended := kept[greatest(1, cardinality(kept) - ${MARKS_MAX - 2}):] || jsonb_build_object(
    'process', process_id, 'number', greatest(highest, coalesce(marked, 0)), 'until', now_ms + ${KEEP_MS});
  RETURN d;
END $$;

-- Drops expired entries, and marks them as ended.
CREATE OR REPLACE FUNCTION ${schema}._sweep(d ${schema}._draft, now_ms bigint) RETURNS ${schema}._draft
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  before jsonb[];
  live jsonb[] := '{}';
  entry jsonb;
BEGIN
  FOREACH entry IN ARRAY d.ended LOOP
    IF (entry->>'until')::bigint > now_ms THEN live := live || entry; END IF;
  END LOOP;
  IF cardinality(live) < cardinality(d.ended) THEN
    d.ended := live;
    d.changed := true;
  END IF;
  live := ${schema}._live(d.rests, now_ms);
  IF cardinality(live) < cardinality(d.rests) THEN
    d.rests := live;
    d.changed := true;
  END IF;
  before := d.holders;
  live := ${schema}._live(before, now_ms);
  IF cardinality(live) < cardinality(before) THEN
    d.holders := live;
    d.changed := true;
    FOREACH entry IN ARRAY before LOOP
      IF (entry->>'expiresAt')::bigint <= now_ms THEN d := ${schema}._mark_ended(d, entry->'hold', now_ms); END IF;
    END LOOP;
  END IF;
  -- Last: the end of a holder may have removed waiters of its process.
  before := d.waiters;
  live := ${schema}._live(before, now_ms);
  IF cardinality(live) < cardinality(before) THEN
    d.waiters := live;
    d.changed := true;
    FOREACH entry IN ARRAY before LOOP
      IF (entry->>'expiresAt')::bigint <= now_ms THEN d := ${schema}._mark_ended(d, entry->'hold', now_ms); END IF;
    END LOOP;
  END IF;
  RETURN d;
END $$;
`;

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
    -- A waiter that becomes first during a cool-down must learn how long it lasts: nothing else wakes it.
    IF cardinality(d.rests) > 0 AND d.waiters[1]->'hold' <> head->'hold' THEN d.called := d.called || d.waiters[1]; END IF;
    d.wakes := d.wakes || ${schema}._turns(d, now_ms);
  END IF;
  IF d.changed THEN d.decision := greatest(d.decision + 1, now_ms * 1000); END IF;
  d.reply := d.reply || jsonb_build_object('now', now_ms, 'decision', d.decision,
    'othersWait', ${schema}._others_wait(d.waiters, c->'hold'->>'process'));
  RETURN d;
END $$;

-- The time from which the record may be deleted: all entries expired, the clock past its token, kept long enough.
CREATE OR REPLACE FUNCTION ${schema}._delete_after(r ${schema}.records) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  needed bigint := greatest(r.token / 1000, r.decision / 1000 + ${KEEP_MS}) + 1;
BEGIN
  SELECT greatest(needed, max((entry->>'expiresAt')::bigint) + ${KEEP_MS}) INTO needed
    FROM jsonb_array_elements(r.holders || r.waiters) entry;
  SELECT greatest(needed, max((entry->>'expiresAt')::bigint)) INTO needed FROM jsonb_array_elements(r.rests) entry;
  SELECT greatest(needed, max((entry->>'until')::bigint)) INTO needed FROM jsonb_array_elements(r.ended) entry;
  -- Lowered only from far ahead, so that the indexed column changes rarely.
  RETURN greatest(${onGrid('needed')}, least(r.delete_after, ${onGrid(`needed + ${FAR_MS}`)}));
END $$;
`;
