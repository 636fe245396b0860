/** The port of `renew`, `release` and `evict` in `decide.ts`. */
import { EVICTION_MS, EVICTIONS_MAX, TOKEN_BLOCK } from '../../../protocol/index.js';

export const renewReleaseEvictSql = (schema: string): string => `
CREATE OR REPLACE FUNCTION ${schema}._renew(d ${schema}._draft, c jsonb, now_ms bigint) RETURNS ${schema}._draft
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  holders jsonb[] := d.holders;
  holder jsonb;
  expires_at bigint;
  block jsonb;
  entry jsonb;
BEGIN
  FOR i IN 1..cardinality(holders) LOOP
    holder := holders[i];
    CONTINUE WHEN holder->'hold' <> c->'hold';
    expires_at := (holder->>'expiresAt')::bigint;
    IF jsonb_typeof(c->'added') IS DISTINCT FROM 'object' THEN
      expires_at := greatest(expires_at, now_ms + (c->>'ttlMs')::bigint);
    ELSIF (c#>>'{added,expiresAt}')::bigint = expires_at THEN
      expires_at := expires_at + (c#>>'{added,ms}')::bigint;
    END IF;
    IF expires_at <> (holder->>'expiresAt')::bigint THEN
      holders[i] := holder || jsonb_build_object('expiresAt', expires_at);
      d.holders := holders;
      d.changed := true;
    END IF;
    IF (c->>'block')::boolean AND holder->'permits' = holder->'capacity' THEN
      d := ${schema}._reserve(d, ${TOKEN_BLOCK}, now_ms);
      IF d.reply IS NOT NULL THEN RETURN d; END IF;
      block := jsonb_build_object('token', d.token - ${TOKEN_BLOCK - 1}, 'tokenLast', d.token);
    END IF;
    d.reply := jsonb_build_object('kind', 'renewed', 'expiresAt', expires_at, 'block', block);
    RETURN d;
  END LOOP;
  d.reply := '{"kind":"lost"}';
  FOREACH entry IN ARRAY d.evictions LOOP
    CONTINUE WHEN entry->'process' <> c->'hold'->'process' OR entry->'number' <> c->'hold'->'number';
    d.reply := d.reply || jsonb_build_object('evicted', jsonb_build_object('reason', entry->'reason'));
    EXIT;
  END LOOP;
  RETURN d;
END $$;

CREATE OR REPLACE FUNCTION ${schema}._release(d ${schema}._draft, c jsonb, now_ms bigint) RETURNS ${schema}._draft
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  kept jsonb[] := '{}';
  holder jsonb;
  entry jsonb;
  rests_until bigint;
BEGIN
  FOREACH entry IN ARRAY d.holders LOOP
    IF entry->'hold' = c->'hold' THEN holder := entry; ELSE kept := kept || entry; END IF;
  END LOOP;
  d := ${schema}._mark_ended(d, c->'hold', now_ms);
  d.reply := jsonb_build_object('kind', 'released', 'held', holder IS NOT NULL);
  IF holder IS NULL THEN RETURN d; END IF;
  d.holders := kept;
  d.changed := true;
  rests_until := (holder->>'acquiredAt')::bigint + (c->>'minHoldMs')::bigint;
  IF (c->>'minHoldMs')::bigint > 0 AND rests_until > now_ms THEN
    d.rests := d.rests || (holder - 'hold' - 'inbox' - 'metadata' || jsonb_build_object('expiresAt', rests_until));
    IF cardinality(d.waiters) > 0 THEN d.called := d.called || d.waiters[1]; END IF;
  END IF;
  RETURN d;
END $$;

-- An exclusive hold is alone on its key: every token reserved since its grant is of its blocks.
CREATE OR REPLACE FUNCTION ${schema}._evict(d ${schema}._draft, c jsonb, now_ms bigint) RETURNS ${schema}._draft
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  from_token bigint := coalesce((c->>'fromToken')::bigint, 0);
  up_to bigint := (c->>'upToToken')::bigint;
  gone jsonb[] := '{}';
  kept jsonb[] := '{}';
  kept_rests jsonb[] := '{}';
  first_token bigint;
  last_token bigint;
  ended_count integer;
  entry jsonb;
BEGIN
  FOREACH entry IN ARRAY d.holders || d.rests LOOP
    first_token := (entry->>'token')::bigint;
    last_token := CASE WHEN entry->'permits' = entry->'capacity' THEN d.token ELSE first_token END;
    IF first_token <= up_to AND last_token >= from_token THEN gone := gone || entry;
    ELSIF entry ? 'hold' THEN kept := kept || entry;
    ELSE kept_rests := kept_rests || entry;
    END IF;
  END LOOP;
  ended_count := cardinality(gone);
  d.reply := jsonb_build_object('kind', 'evicted', 'count', ended_count);
  IF ended_count = 0 THEN RETURN d; END IF;
  d.holders := kept;
  d.rests := kept_rests;
  d.changed := true;
  FOREACH entry IN ARRAY gone LOOP
    -- Cool-downs belong to nobody.
    CONTINUE WHEN NOT entry ? 'hold';
    d := ${schema}._mark_ended(d, entry->'hold', now_ms);
    d.evictions := d.evictions[greatest(1, cardinality(d.evictions) - ${EVICTIONS_MAX - 2}):]
      || (entry->'hold' || jsonb_build_object('reason', c->>'reason',
        'until', least((entry->>'expiresAt')::bigint, now_ms + ${EVICTION_MS})));
    IF entry->>'inbox' IS NOT NULL THEN
      d.wakes := d.wakes || jsonb_build_object('inbox', entry->'inbox', 'why', 'evicted');
    END IF;
  END LOOP;
  RETURN d;
END $$;
`;
