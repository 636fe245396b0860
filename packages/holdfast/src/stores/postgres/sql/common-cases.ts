/**
 * The common cases of `decide`, as expressions: nothing rests, nobody waits, no mark has run out, and a claim finds the
 * key free, or the command comes from its only holder. One.ts and quick.ts answer these; the rest is for `_decide`.
 *
 * The names in them: `r` the row before, `c` the command, `now_ms`. One that cannot be answered must be left as it is.
 */
import { KEEP_MS, MARKS_MAX, STATE_VERSION, TOKEN_BLOCK } from '../../../protocol/index.js';
import { deleteAfter } from './decide.js';

const TOKEN_MAX = Number.MAX_SAFE_INTEGER;

/** Marks that have run out are dropped, which is a change; a hold at or below its process's mark has ended. */
const OVER = '$[*] ? (@.until <= $now || (@.process == $process && @.number >= $number))';
const MARKS_ALLOW = `(r.ended = '[]' OR (jsonb_array_length(r.ended) < ${MARKS_MAX} AND NOT jsonb_path_exists(r.ended, '${OVER}',
      c->'hold' || jsonb_build_object('now', now_ms))))`;

const SIMPLE = `r.version BETWEEN 1 AND ${STATE_VERSION} AND r.rests = '[]' AND r.waiters = '[]' AND ${MARKS_ALLOW}`;
const BY_HOLDER = `r.holders->0->'hold' = c->'hold' AND r.holders->1 IS NULL
      AND (r.holders->0->>'expiresAt')::bigint > now_ms AND ${SIMPLE}`;

const TOKEN = 'greatest(r.token + 1, now_ms * 1000)';
export const DECISION = 'greatest(r.decision + 1, now_ms * 1000)';

/** Whether each can be answered here. A row that is not there counts as an empty one. */
export const CAN_CLAIM = `r.holders = '[]' AND ${SIMPLE} AND (c->>'permits')::bigint <= (c->>'capacity')::bigint
      AND r.token < ${TOKEN_MAX - TOKEN_BLOCK}`;
export const CAN_RENEW = `NOT c ? 'added' AND r.token < ${TOKEN_MAX - TOKEN_BLOCK} AND ${BY_HOLDER}`;
export const CAN_RELEASE = `(r.holders->0->>'acquiredAt')::bigint + (c->>'minHoldMs')::bigint <= now_ms AND ${BY_HOLDER}`;

/** The last token that a claim reserves. */
export const CLAIMED_TOKEN = `${TOKEN} + CASE WHEN c->'permits' = c->'capacity' THEN ${TOKEN_BLOCK - 1} ELSE 0 END`;
export const CLAIMED_HOLDERS = `jsonb_build_array(jsonb_build_object('hold', c->'hold', 'owner', c->'owner',
      'permits', c->'permits', 'capacity', c->'capacity', 'token', ${TOKEN}, 'inbox', c->'inbox',
      'acquiredAt', now_ms, 'expiresAt', now_ms + (c->>'ttlMs')::bigint, 'metadata', c->'metadata'))`;

export const WANTS_BLOCK = `((c->>'block')::boolean AND r.holders->0->'permits' = r.holders->0->'capacity')`;
export const RENEWED_TOKEN = `CASE WHEN ${WANTS_BLOCK} THEN ${TOKEN} + ${TOKEN_BLOCK - 1} ELSE r.token END`;
export const RENEWED_UNTIL = `greatest((r.holders->0->>'expiresAt')::bigint, now_ms + (c->>'ttlMs')::bigint)`;
export const RENEWED_HOLDERS = `jsonb_build_array(r.holders->0 || jsonb_build_object('expiresAt', ${RENEWED_UNTIL}))`;

export const RELEASED_MARKS = `CASE WHEN r.ended = '[]' THEN '[]'
      ELSE jsonb_path_query_array(r.ended, '$[*] ? (@.process != $process)', c->'hold') END
      || jsonb_build_object('process', c->'hold'->'process', 'number', c->'hold'->'number', 'until', now_ms + ${KEEP_MS})`;

/** When such a row may go. Its marks run out by then: none outlives the decision that made it by more. */
export function deleteAfterCase(expiresAt: string): string {
  const needed = `greatest(r.token / 1000 + 3, ${DECISION} / 1000 + ${KEEP_MS + 3}, ${expiresAt} + ${KEEP_MS})`;
  return deleteAfter('r.delete_after', needed);
}
