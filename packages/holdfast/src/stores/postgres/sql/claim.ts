/** The port of `claim` in `decide.ts`: granted, refused, or queued. */
import {
  HOLDERS_SHOWN,
  QUEUE_MAX,
  TOKEN_BLOCK,
  WAITER_LIFE_MS,
  WAITER_REFRESH_MS,
  WINDOW_MS,
} from '../../../protocol/index.js';

export const claimSql = (schema: string): string => `
-- Reserves tokens above all earlier ones, as long as they are safe integers.
CREATE OR REPLACE FUNCTION ${schema}._reserve(d ${schema}._draft, count integer, now_ms bigint) RETURNS ${schema}._draft
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  d.token := greatest(d.token + 1, now_ms * 1000) + count - 1;
  d.changed := true;
  IF d.token > ${Number.MAX_SAFE_INTEGER} THEN d.reply := '{"error":"tokens"}'; END IF;
  RETURN d;
END $$;

CREATE OR REPLACE FUNCTION ${schema}._grant_of(holder jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_build_object('kind', 'granted', 'token', holder->'token', 'tokenLast',
    (holder->>'token')::bigint + CASE WHEN holder->'permits' = holder->'capacity' THEN ${TOKEN_BLOCK - 1} ELSE 0 END,
    'acquiredAt', holder->'acquiredAt', 'expiresAt', holder->'expiresAt')
$$;

CREATE OR REPLACE FUNCTION ${schema}._grant(d ${schema}._draft, c jsonb, place integer, now_ms bigint)
RETURNS ${schema}._draft LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  block integer := CASE WHEN c->'permits' = c->'capacity' THEN ${TOKEN_BLOCK} ELSE 1 END;
  holder jsonb;
BEGIN
  d := ${schema}._reserve(d, block, now_ms);
  IF d.reply IS NOT NULL THEN RETURN d; END IF;
  holder := jsonb_build_object('hold', c->'hold', 'owner', c->'owner', 'permits', c->'permits',
    'capacity', c->'capacity', 'token', d.token - block + 1, 'inbox', c->'inbox', 'acquiredAt', now_ms,
    'expiresAt', now_ms + (c->>'ttlMs')::bigint, 'metadata', c->'metadata');
  d.holders := d.holders || holder;
  IF place > 0 THEN d.waiters := d.waiters[:place - 1] || d.waiters[place + 1:]; END IF;
  d.reply := ${schema}._grant_of(holder);
  RETURN d;
END $$;

-- Keeps or takes a place in the queue; the reply has the position, or null for none.
CREATE OR REPLACE FUNCTION ${schema}._enqueue(d ${schema}._draft, c jsonb, place integer, now_ms bigint)
RETURNS ${schema}._draft LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  expires_at bigint := now_ms + ${WAITER_LIFE_MS};
  position integer;
  returned boolean;
  waiters jsonb[] := d.waiters;
BEGIN
  IF place > 0 THEN
    position := place - 1;
    returned := coalesce(now_ms >= (waiters[place]->>'wokenAt')::bigint + ${WINDOW_MS}, false);
    IF returned OR expires_at - (waiters[place]->>'expiresAt')::bigint >= ${WAITER_REFRESH_MS} THEN
      waiters[place] := waiters[place] || jsonb_build_object('expiresAt', expires_at);
      IF returned THEN waiters[place] := waiters[place] || '{"wokenAt":null}'; END IF;
      d.changed := true;
    END IF;
  ELSIF (c->>'queue')::boolean AND cardinality(waiters) < ${QUEUE_MAX} THEN
    position := cardinality(waiters);
    waiters := waiters || jsonb_build_object('hold', c->'hold', 'owner', c->'owner', 'permits', c->'permits',
      'capacity', c->'capacity', 'inbox', c->'inbox', 'since', now_ms, 'expiresAt', expires_at, 'wokenAt', NULL);
    d.changed := true;
  END IF;
  d.waiters := waiters;
  d.reply := jsonb_build_object('kind', 'busy', 'position', position);
  RETURN d;
END $$;

-- A holder without its secrets. Only cool-downs have no hold.
CREATE OR REPLACE FUNCTION ${schema}._holder_views(entries jsonb[]) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(jsonb_agg(
    entry - 'hold' - 'inbox' || jsonb_build_object('metadata', entry->'metadata', 'resting', NOT entry ? 'hold')
    ORDER BY i), '[]') FROM unnest(entries) WITH ORDINALITY AS t(entry, i)
$$;

CREATE OR REPLACE FUNCTION ${schema}._busy(d ${schema}._draft, c jsonb, place integer, ahead integer, now_ms bigint)
RETURNS ${schema}._draft LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  entry jsonb;
BEGIN
  d := ${schema}._enqueue(d, c, place, now_ms);
  -- Only exclusive holds are handed over within a process, so only they need to know that others wait.
  IF (c->>'queue')::boolean THEN
    FOREACH entry IN ARRAY d.holders LOOP
      CONTINUE WHEN entry->'permits' <> entry->'capacity' OR entry->>'inbox' IS NULL;
      CONTINUE WHEN entry->'hold'->'process' = c->'hold'->'process';
      d.wakes := d.wakes || jsonb_build_object('inbox', entry->'inbox', 'why', 'waiting');
    END LOOP;
  END IF;
  d.reply := d.reply || jsonb_build_object(
    'holders', ${schema}._holder_views((d.holders || d.rests)[1:${HOLDERS_SHOWN}]),
    'freeInMs', ${schema}._free_in_ms(d, ahead, now_ms));
  RETURN d;
END $$;

CREATE OR REPLACE FUNCTION ${schema}._claim(d ${schema}._draft, c jsonb, now_ms bigint) RETURNS ${schema}._draft
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  own jsonb := c->'hold';
  place integer := 0;
  ahead integer;
  entry jsonb;
BEGIN
  FOREACH entry IN ARRAY d.holders LOOP
    IF entry->'hold' = own THEN
      d.reply := ${schema}._grant_of(entry);
      RETURN d;
    END IF;
  END LOOP;
  FOREACH entry IN ARRAY d.ended LOOP
    IF entry->'process' = own->'process' AND (entry->>'number')::bigint >= (own->>'number')::bigint THEN
      d.reply := '{"kind":"withdrawn"}';
      RETURN d;
    END IF;
  END LOOP;
  -- A process has one contender per key: a later claim ends its earlier place in the queue, and others may be next.
  ahead := cardinality(d.waiters);
  FOREACH entry IN ARRAY d.waiters LOOP
    IF entry->'hold'->'process' = own->'process'
      AND (entry->'hold'->>'number')::bigint < (own->>'number')::bigint THEN
      d := ${schema}._mark_ended(d, entry->'hold', now_ms);
    END IF;
  END LOOP;
  IF cardinality(d.waiters) < ahead THEN d := ${schema}._call_next(d, now_ms); END IF;
  ahead := cardinality(d.waiters);
  FOR i IN 1..cardinality(d.waiters) LOOP
    IF d.waiters[i]->'hold' = own THEN
      place := i;
      ahead := i - 1;
      EXIT;
    END IF;
  END LOOP;
  IF ${schema}._has_room(d, ahead, c, now_ms) THEN RETURN ${schema}._grant(d, c, place, now_ms); END IF;
  RETURN ${schema}._busy(d, c, place, ahead, now_ms);
END $$;
`;
