/**
 * A command that comes alone and is a usual case, in as few steps as can be: each of them costs every time. Answers, or
 * leaves everything as it was.
 */
import { STATE_VERSION, TOKEN_BLOCK } from '../../../protocol/index.js';
import { NOW_MS } from './time.js';
import {
  CAN_CLAIM,
  CAN_COME,
  CAN_HAND_ON,
  CAN_RELEASE,
  CAN_RENEW,
  CLAIMED_DELETE_AFTER,
  CLAIMED_HOLDERS,
  CLAIMED_TOKEN,
  DECISION,
  EXTENDS,
  FITS,
  HANDED_ON_WAITERS,
  RELEASED_DELETE_AFTER,
  RELEASED_MARKS,
  RENEWED_DELETE_AFTER,
  RENEWED_HOLDERS,
  RENEWED_TOKEN,
  WANTS_BLOCK,
} from './usual-cases.js';

const DECIDED = "'now', now_ms, 'decision', r.decision, 'othersWait', r.waiters <> '[]'";
const GRANTED = `jsonb_build_array(jsonb_build_object('kind', 'granted', 'token', r.holders->0->'token',
      'tokenLast', r.token, 'acquiredAt', now_ms, 'expiresAt', r.holders->0->'expiresAt', ${DECIDED}))`;
const RENEWED = `jsonb_build_array(jsonb_build_object('kind', 'renewed', 'expiresAt', r.holders->0->'expiresAt',
      'block', CASE WHEN ${WANTS_BLOCK}
        THEN jsonb_build_object('token', r.token - ${TOKEN_BLOCK - 1}, 'tokenLast', r.token) END, ${DECIDED}))`;
const RELEASED = `jsonb_build_array(jsonb_build_object('kind', 'released', 'held', true, ${DECIDED}))`;

const NO_ROW = '(SELECT 0::bigint AS token, 0::bigint AS decision) AS r';

const claim = (schema: string): string => `
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

const renew = (schema: string): string => `
    UPDATE ${schema}.records AS r SET version = ${STATE_VERSION}, token = ${RENEWED_TOKEN}, decision = ${DECISION},
      holders = ${RENEWED_HOLDERS}, delete_after = ${RENEWED_DELETE_AFTER}
    WHERE r.key = c->>'key' AND ${CAN_RENEW} AND ${EXTENDS} RETURNING ${RENEWED} INTO answers;`;

const release = (schema: string): string => `
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

/** A row that another changes at this moment is waited for, and then looked at again, as it is then. */
export const one = (schema: string): string => `
  now_ms := ${NOW_MS};
  IF c->>'kind' = 'claim' THEN${claim(schema)}
  ELSIF c->>'kind' = 'release' THEN${release(schema)}
  ELSIF c->>'kind' = 'renew' THEN${renew(schema)}
  END IF;`;
