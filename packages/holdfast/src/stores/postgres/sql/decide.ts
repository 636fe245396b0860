/**
 * The port of `decide` and its draft (protocol/decide.ts, protocol/draft.ts), and the way back from a draft to a
 * row. The quick cases must give the same results.
 */
import { KEEP_MS, MARKS_MAX, STATE_VERSION } from '../../../protocol/index.js';
import { FAR_MS, onGrid } from './records.js';

export const draftSql = (schema: string): string => `
DO $$ BEGIN
  CREATE TYPE ${schema}._draft AS (
    token bigint, decision bigint,
    holders jsonb[], rests jsonb[], waiters jsonb[], ended jsonb[], evictions jsonb[],
    changed boolean, called jsonb[], wakes jsonb[], reply jsonb
  );
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;

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
  waiters jsonb[] := '{}';
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
      waiters := waiters || entry;
    END IF;
  END LOOP;
  d.waiters := waiters;
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
CREATE OR REPLACE FUNCTION ${schema}._decide(r ${schema}.records, c jsonb, now_ms bigint) RETURNS ${schema}._draft
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  d ${schema}._draft;
  head jsonb := r.waiters->0;
  others_wait boolean := false;
BEGIN
  d.token := coalesce(r.token, 0);
  d.decision := coalesce(r.decision, 0);
  d.holders := ${schema}._holders(r);
  d.rests := ${schema}._elements(r.rests);
  d.waiters := ${schema}._elements(r.waiters);
  d.ended := ${schema}._marks(r);
  -- Those that are over are dropped with the next write, and are no reason for one.
  d.evictions := '{}';
  IF r.evictions IS NOT NULL THEN
    d.evictions := ARRAY(SELECT e FROM jsonb_array_elements(r.evictions) AS e WHERE (e->>'until')::bigint > now_ms);
  END IF;
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
    d.wakes := d.wakes || ${schema}._wake_ups(d, now_ms);
    others_wait := EXISTS (SELECT FROM unnest(d.waiters) AS waiter
      WHERE waiter->'hold'->>'process' IS DISTINCT FROM c->'hold'->>'process');
  END IF;
  IF d.changed THEN d.decision := greatest(d.decision + 1, now_ms * 1000); END IF;
  d.reply := d.reply || jsonb_build_object('now', now_ms, 'decision', d.decision,
    'othersWait', others_wait);
  RETURN d;
END $$;

-- The time from which the record may be deleted: all entries expired, the clock past its token, kept long enough.
CREATE OR REPLACE FUNCTION ${schema}._delete_after(d ${schema}._draft, before bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  needed bigint := greatest(d.token / 1000, d.decision / 1000 + ${KEEP_MS}) + 1;
BEGIN
  SELECT greatest(needed, max((entry->>'expiresAt')::bigint) + ${KEEP_MS}) INTO needed FROM unnest(d.holders || d.waiters) entry;
  SELECT greatest(needed, max((entry->>'expiresAt')::bigint)) INTO needed FROM unnest(d.rests) entry;
  SELECT greatest(needed, max((entry->>'until')::bigint)) INTO needed FROM unnest(d.ended || d.evictions) entry;
  -- Lowered only from far ahead, so that the indexed column changes rarely.
  RETURN greatest(${onGrid('needed')}, least(before, ${onGrid(`needed + ${FAR_MS}`)}));
END $$;

-- The row of a draft.
CREATE OR REPLACE FUNCTION ${schema}._row(p_key text, d ${schema}._draft, delete_after_before bigint) RETURNS ${schema}.records
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  holder jsonb := CASE WHEN cardinality(d.holders) = 1 THEN d.holders[1] END;
  marks integer := cardinality(d.ended);
  mark jsonb := d.ended[marks];
BEGIN
  RETURN ROW(p_key, ${STATE_VERSION}, d.token, d.decision, 0, ${schema}._delete_after(d, delete_after_before),
    holder->'hold'->>'process', holder->'hold'->'number', holder->>'owner', holder->'permits', holder->'capacity',
    holder->'token', holder->>'inbox', holder->'acquiredAt', holder->'expiresAt', holder->>'metadata',
    mark->>'process', mark->'number', mark->'until',
    CASE WHEN cardinality(d.holders) > 1 THEN to_jsonb(d.holders) END, nullif(to_jsonb(d.rests), '[]'),
    nullif(to_jsonb(d.waiters), '[]'), CASE WHEN marks > 1 THEN to_jsonb(d.ended[:marks - 1]) END,
    nullif(to_jsonb(d.evictions), '[]'))::${schema}.records;
END $$;
`;
