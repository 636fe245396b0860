/** The usual cases inside a batch. Sets `reply`, `changed` and the row `r`, or leaves them all as they are. */
import { TOKEN_BLOCK } from '../../../protocol/index.js';
import {
  CAN_CLAIM,
  CAN_RELEASE,
  CAN_RENEW,
  CLAIMED_DELETE_AFTER,
  CLAIMED_HOLDERS,
  CLAIMED_TOKEN,
  DECISION,
  EXTENDS,
  RELEASED_DELETE_AFTER,
  RELEASED_MARKS,
  RENEWED_DELETE_AFTER,
  RENEWED_HOLDERS,
  RENEWED_TOKEN,
  WANTS_BLOCK,
} from './usual-cases.js';

const REPLY = "'now', now_ms, 'decision', r.decision, 'othersWait', false";

const CLAIM = `
        changed := true;
        r.delete_after := ${CLAIMED_DELETE_AFTER};
        r.holders := ${CLAIMED_HOLDERS};
        r.token := ${CLAIMED_TOKEN};
        r.decision := ${DECISION};
        reply := jsonb_build_object('kind', 'granted', 'token', r.holders->0->'token', 'tokenLast', r.token,
          'acquiredAt', now_ms, 'expiresAt', r.holders->0->'expiresAt', ${REPLY});`;

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
        reply := jsonb_build_object('kind', 'renewed', 'expiresAt', r.holders->0->'expiresAt', 'block', block, ${REPLY});`;

const RELEASE = `
        changed := true;
        r.delete_after := ${RELEASED_DELETE_AFTER};
        r.holders := '[]';
        r.ended := ${RELEASED_MARKS};
        r.decision := ${DECISION};
        reply := jsonb_build_object('kind', 'released', 'held', true, ${REPLY});`;

export const QUICK = `
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
