/** The port of the queue (protocol/waiters.ts): which claims fit, which waiter is woken next, how soon to claim again. */
import { NAME_AGAIN_MS, WINDOW_HINT_MS, WINDOW_MS } from '../../../protocol/index.js';

export const queueSql = (schema: string): string => `
-- The permits taken, and the smallest capacity among their holders.
CREATE OR REPLACE FUNCTION ${schema}._taken(d ${schema}._draft, OUT permits bigint, OUT capacity bigint)
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  entry jsonb;
BEGIN
  permits := 0;
  capacity := ${Number.MAX_SAFE_INTEGER};
  FOREACH entry IN ARRAY d.holders || d.rests LOOP
    permits := permits + (entry->>'permits')::bigint;
    capacity := least(capacity, (entry->>'capacity')::bigint);
  END LOOP;
END $$;

-- Whether a claim behind so many waiters fits beside holders, cool-downs and woken waiters.
CREATE OR REPLACE FUNCTION ${schema}._has_room(d ${schema}._draft, ahead integer, wants jsonb, now_ms bigint)
RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  permits bigint;
  capacity bigint;
  woken_at bigint;
  entry jsonb;
BEGIN
  SELECT t.permits, t.capacity INTO permits, capacity FROM ${schema}._taken(d) t;
  FOREACH entry IN ARRAY d.waiters[1:ahead] LOOP
    woken_at := (entry->>'wokenAt')::bigint;
    IF woken_at IS NULL THEN RETURN false; END IF;
    CONTINUE WHEN now_ms >= woken_at + ${WINDOW_MS};
    permits := permits + (entry->>'permits')::bigint;
    capacity := least(capacity, (entry->>'capacity')::bigint);
  END LOOP;
  RETURN permits + (wants->>'permits')::bigint <= least(capacity, (wants->>'capacity')::bigint);
END $$;

-- Opens a window for every waiter that now fits, in order, and closes the windows of those that no longer do.
-- Stops at the first that does not fit: small claims never starve a large one.
CREATE OR REPLACE FUNCTION ${schema}._call_next(d ${schema}._draft, now_ms bigint) RETURNS ${schema}._draft
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  waiters jsonb[] := d.waiters;
  permits bigint;
  capacity bigint;
  woken_at bigint;
  blocked boolean := false;
  changed boolean := false;
  entry jsonb;
BEGIN
  SELECT t.permits, t.capacity INTO permits, capacity FROM ${schema}._taken(d) t;
  FOR i IN 1..cardinality(waiters) LOOP
    entry := waiters[i];
    woken_at := (entry->>'wokenAt')::bigint;
    CONTINUE WHEN now_ms >= woken_at + ${WINDOW_MS};
    blocked := blocked
      OR permits + (entry->>'permits')::bigint > least(capacity, (entry->>'capacity')::bigint);
    IF blocked THEN
      CONTINUE WHEN woken_at IS NULL;
      waiters[i] := entry || '{"wokenAt":null}';
      changed := true;
      CONTINUE;
    END IF;
    permits := permits + (entry->>'permits')::bigint;
    capacity := least(capacity, (entry->>'capacity')::bigint);
    CONTINUE WHEN woken_at IS NOT NULL;
    entry := entry || jsonb_build_object('wokenAt', now_ms);
    waiters[i] := entry;
    changed := true;
    d.called := d.called || entry;
  END LOOP;
  IF changed THEN
    d.waiters := waiters;
    d.changed := true;
  END IF;
  RETURN d;
END $$;

-- The time until something ahead of this claim may end.
CREATE OR REPLACE FUNCTION ${schema}._free_in_ms(d ${schema}._draft, ahead integer, now_ms bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  soonest bigint := ${Number.MAX_SAFE_INTEGER};
  woken_at bigint;
  entry jsonb;
BEGIN
  FOREACH entry IN ARRAY d.holders || d.rests LOOP
    soonest := least(soonest, (entry->>'expiresAt')::bigint);
  END LOOP;
  FOREACH entry IN ARRAY d.waiters[1:ahead] LOOP
    woken_at := (entry->>'wokenAt')::bigint;
    IF woken_at IS NULL THEN
      soonest := least(soonest, (entry->>'expiresAt')::bigint);
    ELSIF now_ms < woken_at + ${WINDOW_MS} THEN
      soonest := least(soonest, woken_at + ${WINDOW_MS}, now_ms + ${WINDOW_HINT_MS});
    END IF;
  END LOOP;
  RETURN soonest - now_ms;
END $$;

-- Wake-ups for the waiters woken now, and again for those woken a while ago that have not claimed yet.
CREATE OR REPLACE FUNCTION ${schema}._wake_ups(d ${schema}._draft, now_ms bigint) RETURNS jsonb[]
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  wake_ups jsonb[] := '{}';
  woken_at bigint;
  entry jsonb;
BEGIN
  FOREACH entry IN ARRAY d.waiters LOOP
    CONTINUE WHEN entry->>'inbox' IS NULL;
    woken_at := (entry->>'wokenAt')::bigint;
    IF entry = ANY (d.called) OR (now_ms >= woken_at + ${NAME_AGAIN_MS} AND now_ms < woken_at + ${WINDOW_MS}) THEN
      wake_ups := wake_ups || jsonb_build_object('inbox', entry->'inbox', 'why', 'turn');
    END IF;
  END LOOP;
  RETURN wake_ups;
END $$;
`;
