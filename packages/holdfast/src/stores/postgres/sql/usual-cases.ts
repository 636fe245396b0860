/**
 * The usual cases of `decide`, as expressions: nothing rests, nobody waits, no mark has run out, the clock has not gone
 * back, and a claim finds the key free, or the command comes from its only holder. They are answered by one.ts and
 * quick.ts; the rest is for `_decide`. Two more are answered by one.ts: an exclusive hold goes from its holder to the
 * first in line, and the first in line comes for it.
 *
 * The names in them: `r` the row before, `c` the command, `now_ms` the time.
 */
import { KEEP_MS, MARKS_MAX, STATE_VERSION, TOKEN_BLOCK, WINDOW_MS } from '../../../protocol/index.js';
import { FAR_MS, onGrid } from './time.js';

/** Marks that have run out are dropped, which is a change; a hold at or below its process's mark has ended. */
const OVER = '$[*] ? (@.until <= $now || (@.process == $process && @.number >= $number))';
const MARKS_ALLOW = `(r.ended = '[]' OR (jsonb_array_length(r.ended) < ${MARKS_MAX}
      AND NOT jsonb_path_exists(r.ended, '${OVER}', c->'hold' || jsonb_build_object('now', now_ms))))`;

/** Of the time that was read, or before; and tokens not far ahead of it. */
const IN_TIME = `r.decision < (now_ms + 1) * 1000 AND r.token < (now_ms + ${KEEP_MS - 10_000}) * 1000`;

const ORDINARY = `r.version BETWEEN 1 AND ${STATE_VERSION} AND r.rests = '[]' AND ${IN_TIME} AND ${MARKS_ALLOW}`;
const SIMPLE = `r.waiters = '[]' AND ${ORDINARY}`;
const IS_HOLDER = `r.holders->0->'hold' = c->'hold' AND r.holders->1 IS NULL
      AND (r.holders->0->>'expiresAt')::bigint > now_ms`;
const BY_HOLDER = `${IS_HOLDER} AND ${SIMPLE}`;

const TOKEN = 'greatest(r.token + 1, now_ms * 1000)';
export const DECISION = 'greatest(r.decision + 1, now_ms * 1000)';
const TTL_MS = "(c->>'ttlMs')::bigint";

/** Whether each can be answered here. */
export const FITS = "(c->>'permits')::bigint <= (c->>'capacity')::bigint";
export const CAN_CLAIM = `r.holders = '[]' AND ${FITS} AND ${SIMPLE}`;
export const CAN_RENEW = `NOT c ? 'added' AND ${BY_HOLDER}`;
const HELD_LONG_ENOUGH = `(r.holders->0->>'acquiredAt')::bigint + (c->>'minHoldMs')::bigint <= now_ms`;
export const CAN_RELEASE = `${HELD_LONG_ENOUGH} AND ${BY_HOLDER}`;

/** Of those in line from the nth on: nobody was called, none has left, and none is of this process. */
const restIsQuiet = (from: number): string => `NOT jsonb_path_exists(r.waiters,
      '$[${from} to last] ? (@.expiresAt <= $now || @.wokenAt != null || @.hold.process == $process)',
      c->'hold' || jsonb_build_object('now', now_ms))`;
const HEAD_IS_EXCLUSIVE = "r.waiters->0->'permits' = r.waiters->0->'capacity'";
/** Whoever is behind an exclusive one is not called. */
export const CAN_HAND_ON = `r.waiters <> '[]' AND ${HEAD_IS_EXCLUSIVE} AND r.holders->0->'permits' = r.holders->0->'capacity'
      AND ${HELD_LONG_ENOUGH} AND ${IS_HOLDER} AND ${restIsQuiet(0)} AND ${ORDINARY}`;
export const HANDED_ON_WAITERS = "jsonb_set(r.waiters, '{0,wokenAt}', to_jsonb(now_ms))";
export const CAN_COME = `r.holders = '[]' AND r.waiters->0->'hold' = c->'hold' AND ${HEAD_IS_EXCLUSIVE}
      AND c->'permits' = c->'capacity' AND (r.waiters->0->>'wokenAt')::bigint + ${WINDOW_MS} > now_ms
      AND (r.waiters->0->>'expiresAt')::bigint > now_ms AND ${restIsQuiet(1)} AND ${ORDINARY}`;

/** The last token that a claim reserves. */
export const CLAIMED_TOKEN = `${TOKEN} + CASE WHEN c->'permits' = c->'capacity' THEN ${TOKEN_BLOCK - 1} ELSE 0 END`;
export const CLAIMED_HOLDERS = `jsonb_build_array(jsonb_build_object('hold', c->'hold', 'owner', c->'owner',
      'permits', c->'permits', 'capacity', c->'capacity', 'token', ${TOKEN}, 'inbox', c->'inbox',
      'acquiredAt', now_ms, 'expiresAt', now_ms + ${TTL_MS}, 'metadata', c->'metadata'))`;

export const WANTS_BLOCK = `((c->>'block')::boolean AND r.holders->0->'permits' = r.holders->0->'capacity')`;
/** A renewal may change nothing. */
export const EXTENDS = `(${WANTS_BLOCK} OR (r.holders->0->>'expiresAt')::bigint < now_ms + ${TTL_MS})`;
export const RENEWED_TOKEN = `CASE WHEN ${WANTS_BLOCK} THEN ${TOKEN} + ${TOKEN_BLOCK - 1} ELSE r.token END`;
export const RENEWED_HOLDERS = `jsonb_build_array(r.holders->0 || jsonb_build_object('expiresAt',
      greatest((r.holders->0->>'expiresAt')::bigint, now_ms + ${TTL_MS})))`;

export const RELEASED_MARKS = `CASE WHEN r.ended = '[]' THEN '[]'
      ELSE jsonb_path_query_array(r.ended, '$[*] ? (@.process != $process)', c->'hold') END
      || jsonb_build_object('process', c->'hold'->'process', 'number', c->'hold'->'number', 'until', now_ms + ${KEEP_MS})`;

/**
 * When the row may go. Its tokens and marks are of the past by then. A release lowers it only from far ahead, after a
 * long ttl: a row that is claimed and released in turn should keep it.
 */
export const CLAIMED_DELETE_AFTER = onGrid(`now_ms + ${TTL_MS} + ${KEEP_MS}`);
export const RENEWED_DELETE_AFTER = `greatest(r.delete_after, ${CLAIMED_DELETE_AFTER})`;
export const RELEASED_DELETE_AFTER = `least(r.delete_after, ${onGrid(`now_ms + ${KEEP_MS + FAR_MS}`)})`;
