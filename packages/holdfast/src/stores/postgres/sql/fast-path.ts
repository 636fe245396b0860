/**
 * The fast path of `apply`: the common cases as expressions, without `_decide`. `r` is the row before, `c` the command,
 * `now_ms` the time. Common means: no cool-down, no waiter, no expired mark, the clock has not gone back, and a claim finds
 * the key free, or the command comes from its only holder. `_decide` handles everything else.
 *
 * - A single command is one UPDATE. Two more cases have it: a release with a waiter passes an exclusive key to the first
 *   in the queue, and the first in the queue claims it.
 * - In a batch the same expressions work on the row in memory. Measured with batches of 8 and 32: 2.5 to 3 times as fast as
 *   `_decide`.
 */
import { KEEP_MS, MARKS_MAX, STATE_VERSION, TOKEN_BLOCK, WINDOW_MS } from '../../../protocol/index.js';
import { FAR_MS, NOW_MS, onGrid } from './records.js';

/** Expired marks have to be dropped, which is a change; a hold at or below its process's mark has ended. */
const OVER = '$[*] ? (@.until <= $now || (@.process == $process && @.number >= $number))';
const MARKS_ALLOW = `(r.ended = '[]' OR (jsonb_array_length(r.ended) < ${MARKS_MAX}
      AND NOT jsonb_path_exists(r.ended, '${OVER}', c->'hold' || jsonb_build_object('now', now_ms))))`;

/** The last decision is not in the future, and tokens are not far ahead. */
const IN_TIME = `r.decision < (now_ms + 1) * 1000 AND r.token < (now_ms + ${KEEP_MS - 10_000}) * 1000`;

const ORDINARY = `r.version BETWEEN 1 AND ${STATE_VERSION} AND r.rests = '[]' AND ${IN_TIME} AND ${MARKS_ALLOW}`;
const SIMPLE = `r.waiters = '[]' AND ${ORDINARY}`;
const IS_HOLDER = `r.holders->0->'hold' = c->'hold' AND r.holders->1 IS NULL
      AND (r.holders->0->>'expiresAt')::bigint > now_ms`;
const BY_HOLDER = `${IS_HOLDER} AND ${SIMPLE}`;

const TOKEN = 'greatest(r.token + 1, now_ms * 1000)';
const DECISION = 'greatest(r.decision + 1, now_ms * 1000)';
const TTL_MS = "(c->>'ttlMs')::bigint";

/** Whether the fast path can answer. */
const FITS = "(c->>'permits')::bigint <= (c->>'capacity')::bigint";
const CAN_CLAIM = `r.holders = '[]' AND ${FITS} AND ${SIMPLE}`;
const CAN_RENEW = `NOT c ? 'added' AND ${BY_HOLDER}`;
const HELD_LONG_ENOUGH = `(r.holders->0->>'acquiredAt')::bigint + (c->>'minHoldMs')::bigint <= now_ms`;
const CAN_RELEASE = `${HELD_LONG_ENOUGH} AND ${BY_HOLDER}`;

/** From the nth waiter on: none woken, none expired, none of this process. */
const restIsQuiet = (from: number): string => `NOT jsonb_path_exists(r.waiters,
      '$[${from} to last] ? (@.expiresAt <= $now || @.wokenAt != null || @.hold.process == $process)',
      c->'hold' || jsonb_build_object('now', now_ms))`;
const HEAD_IS_EXCLUSIVE = "r.waiters->0->'permits' = r.waiters->0->'capacity'";
/** Waiters behind an exclusive one are not woken. */
const CAN_HAND_ON = `r.waiters <> '[]' AND ${HEAD_IS_EXCLUSIVE} AND r.holders->0->'permits' = r.holders->0->'capacity'
      AND ${HELD_LONG_ENOUGH} AND ${IS_HOLDER} AND ${restIsQuiet(0)} AND ${ORDINARY}`;
const HANDED_ON_WAITERS = "jsonb_set(r.waiters, '{0,wokenAt}', to_jsonb(now_ms))";
const CAN_COME = `r.holders = '[]' AND r.waiters->0->'hold' = c->'hold' AND ${HEAD_IS_EXCLUSIVE}
      AND c->'permits' = c->'capacity' AND (r.waiters->0->>'wokenAt')::bigint + ${WINDOW_MS} > now_ms
      AND (r.waiters->0->>'expiresAt')::bigint > now_ms AND ${restIsQuiet(1)} AND ${ORDINARY}`;

/** The last token that a claim reserves. */
const CLAIMED_TOKEN = `${TOKEN} + CASE WHEN c->'permits' = c->'capacity' THEN ${TOKEN_BLOCK - 1} ELSE 0 END`;
const CLAIMED_HOLDERS = `jsonb_build_array(jsonb_build_object('hold', c->'hold', 'owner', c->'owner',
      'permits', c->'permits', 'capacity', c->'capacity', 'token', ${TOKEN}, 'inbox', c->'inbox',
      'acquiredAt', now_ms, 'expiresAt', now_ms + ${TTL_MS}, 'metadata', c->'metadata'))`;

const WANTS_BLOCK = `((c->>'block')::boolean AND r.holders->0->'permits' = r.holders->0->'capacity')`;
/** Whether a renewal changes anything. */
const EXTENDS = `(${WANTS_BLOCK} OR (r.holders->0->>'expiresAt')::bigint < now_ms + ${TTL_MS})`;
const RENEWED_TOKEN = `CASE WHEN ${WANTS_BLOCK} THEN ${TOKEN} + ${TOKEN_BLOCK - 1} ELSE r.token END`;
const RENEWED_HOLDERS = `jsonb_build_array(r.holders->0 || jsonb_build_object('expiresAt',
      greatest((r.holders->0->>'expiresAt')::bigint, now_ms + ${TTL_MS})))`;

const RELEASED_MARKS = `CASE WHEN r.ended = '[]' THEN '[]'
      ELSE jsonb_path_query_array(r.ended, '$[*] ? (@.process != $process)', c->'hold') END
      || jsonb_build_object('process', c->'hold'->'process', 'number', c->'hold'->'number', 'until', now_ms + ${KEEP_MS})`;

/**
 * When the row may be deleted. Its tokens and marks are in the past by then. A release lowers it only from far ahead,
 * after a long ttl, so that the indexed column changes rarely.
 */
const CLAIMED_DELETE_AFTER = onGrid(`now_ms + ${TTL_MS} + ${KEEP_MS}`);
const RENEWED_DELETE_AFTER = `greatest(r.delete_after, ${CLAIMED_DELETE_AFTER})`;
const RELEASED_DELETE_AFTER = `least(r.delete_after, ${onGrid(`now_ms + ${KEEP_MS + FAR_MS}`)})`;

const REPLY_OF_ONE = "'now', now_ms, 'decision', r.decision, 'othersWait', r.waiters <> '[]'";
const GRANTED = `jsonb_build_array(jsonb_build_object('kind', 'granted', 'token', r.holders->0->'token',
      'tokenLast', r.token, 'acquiredAt', now_ms, 'expiresAt', r.holders->0->'expiresAt', ${REPLY_OF_ONE}))`;
const RENEWED = `jsonb_build_array(jsonb_build_object('kind', 'renewed', 'expiresAt', r.holders->0->'expiresAt',
      'block', CASE WHEN ${WANTS_BLOCK}
        THEN jsonb_build_object('token', r.token - ${TOKEN_BLOCK - 1}, 'tokenLast', r.token) END, ${REPLY_OF_ONE}))`;
const RELEASED = `jsonb_build_array(jsonb_build_object('kind', 'released', 'held', true, ${REPLY_OF_ONE}))`;

const NO_ROW = '(SELECT 0::bigint AS token, 0::bigint AS decision) AS r';

const claimOne = (schema: string): string => `
    UPDATE ${schema}.records AS r SET version = ${STATE_VERSION}, token = ${CLAIMED_TOKEN}, decision = ${DECISION},
      holders = ${CLAIMED_HOLDERS}, delete_after = ${CLAIMED_DELETE_AFTER}
    WHERE r.key = c->>'key' AND ${CAN_CLAIM} RETURNING ${GRANTED} INTO answers;
    IF answers IS NULL AND ${FITS} THEN
      INSERT INTO ${schema}.records AS r (key, token, decision, holders, delete_after)
      SELECT c->>'key', ${CLAIMED_TOKEN}, ${DECISION}, ${CLAIMED_HOLDERS}, ${CLAIMED_DELETE_AFTER} FROM ${NO_ROW}
      ON CONFLICT DO NOTHING RETURNING ${GRANTED} INTO answers;
    END IF;
    IF answers IS NULL THEN
      UPDATE ${schema}.records AS r SET version = ${STATE_VERSION}, token = ${CLAIMED_TOKEN}, decision = ${DECISION},
        holders = ${CLAIMED_HOLDERS}, waiters = r.waiters - 0, delete_after = ${RENEWED_DELETE_AFTER}
      WHERE r.key = c->>'key' AND ${CAN_COME} RETURNING ${GRANTED} INTO answers;
    END IF;`;

const renewOne = (schema: string): string => `
    UPDATE ${schema}.records AS r SET version = ${STATE_VERSION}, token = ${RENEWED_TOKEN}, decision = ${DECISION},
      holders = ${RENEWED_HOLDERS}, delete_after = ${RENEWED_DELETE_AFTER}
    WHERE r.key = c->>'key' AND ${CAN_RENEW} AND ${EXTENDS} RETURNING ${RENEWED} INTO answers;`;

const releaseOne = (schema: string): string => `
    UPDATE ${schema}.records AS r SET version = ${STATE_VERSION}, decision = ${DECISION}, holders = '[]',
      ended = ${RELEASED_MARKS}, delete_after = ${RELEASED_DELETE_AFTER}
    WHERE r.key = c->>'key' AND ${CAN_RELEASE} RETURNING ${RELEASED} INTO answers;
    IF answers IS NULL THEN
      UPDATE ${schema}.records AS r SET version = ${STATE_VERSION}, decision = ${DECISION}, holders = '[]',
        waiters = ${HANDED_ON_WAITERS}, ended = ${RELEASED_MARKS}, delete_after = ${RELEASED_DELETE_AFTER}
      WHERE r.key = c->>'key' AND ${CAN_HAND_ON} RETURNING ${RELEASED}, r.waiters->0->>'inbox' INTO answers, inbox;
      IF hints AND inbox IS NOT NULL THEN
        PERFORM ${schema}._tell(ARRAY[jsonb_build_object('inbox', inbox, 'why', 'turn', 'key', c->>'key')]);
      END IF;
    END IF;`;

/** For a single command: sets `answers`, or changes nothing. An UPDATE waits for a locked row and checks it again. */
export const singleFastPath = (schema: string): string => `
  now_ms := ${NOW_MS};
  IF c->>'kind' = 'claim' THEN${claimOne(schema)}
  ELSIF c->>'kind' = 'release' THEN${releaseOne(schema)}
  ELSIF c->>'kind' = 'renew' THEN${renewOne(schema)}
  END IF;`;

/** For a batch: sets `reply`, `changed` and the row `r`, or leaves all three unchanged. */
const REPLY_IN_BATCH = "'now', now_ms, 'decision', r.decision, 'othersWait', false";

const CLAIM = `
        changed := true;
        r.delete_after := ${CLAIMED_DELETE_AFTER};
        r.holders := ${CLAIMED_HOLDERS};
        r.token := ${CLAIMED_TOKEN};
        r.decision := ${DECISION};
        reply := jsonb_build_object('kind', 'granted', 'token', r.holders->0->'token', 'tokenLast', r.token,
          'acquiredAt', now_ms, 'expiresAt', r.holders->0->'expiresAt', ${REPLY_IN_BATCH});`;

const RENEW = `
        block := NULL;
        changed := ${EXTENDS};
        IF changed THEN
          r.delete_after := ${RENEWED_DELETE_AFTER};
          r.holders := ${RENEWED_HOLDERS};
          r.token := ${RENEWED_TOKEN};
          r.decision := ${DECISION};
          IF ${WANTS_BLOCK} THEN
            block := jsonb_build_object('token', r.token - ${TOKEN_BLOCK - 1}, 'tokenLast', r.token);
          END IF;
        END IF;
        reply := jsonb_build_object('kind', 'renewed', 'expiresAt', r.holders->0->'expiresAt', 'block', block, ${REPLY_IN_BATCH});`;

const RELEASE = `
        changed := true;
        r.delete_after := ${RELEASED_DELETE_AFTER};
        r.holders := '[]';
        r.ended := ${RELEASED_MARKS};
        r.decision := ${DECISION};
        reply := jsonb_build_object('kind', 'released', 'held', true, ${REPLY_IN_BATCH});`;

export const BATCH_FAST_PATH = `
      CASE c->>'kind'
        WHEN 'claim' THEN
          IF ${CAN_CLAIM} THEN${CLAIM}
          END IF;
        WHEN 'release' THEN
          IF ${CAN_RELEASE} THEN${RELEASE}
          END IF;
        WHEN 'renew' THEN
          IF ${CAN_RENEW} THEN${RENEW}
          END IF;
        ELSE NULL;
      END CASE;`;
