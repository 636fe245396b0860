/** A state being worked on, and what ends in it: the port of `draft.ts` of the protocol. */
import { KEEP_MS, MARKS_MAX } from '../../../protocol/index.js';

export const draftSql = (schema: string): string => `
DO $$ BEGIN
  CREATE TYPE ${schema}._draft AS (
    token bigint, decision bigint,
    holders jsonb[], rests jsonb[], waiters jsonb[], ended jsonb[],
    changed boolean, called jsonb[], wakes jsonb[], reply jsonb
  );
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;

-- Lists are worked on as arrays.
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

-- A claim at or below its process's mark is refused, so a waiter there could never be granted: it leaves the line.
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

-- Drops what is over. What expires has ended, so it is marked like anything else that ends.
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
  -- Only now: the end of a holder may have taken waiters of its process out of the line.
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
