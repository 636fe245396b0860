/** The common cases inside a batch. Sets `reply`, `changed` and the row `r`, or leaves them all as they are. */
import { TOKEN_BLOCK } from '../../../protocol/index.js';
import {
  CAN_CLAIM,
  CAN_RELEASE,
  CAN_RENEW,
  CLAIMED_HOLDERS,
  CLAIMED_TOKEN,
  DECISION,
  deleteAfterCase,
  RELEASED_MARKS,
  RENEWED_HOLDERS,
  RENEWED_TOKEN,
  RENEWED_UNTIL,
  WANTS_BLOCK,
} from './common-cases.js';

const REPLY = "'now', now_ms, 'decision', r.decision, 'othersWait', false";

const CLAIM = `
        changed := true;
        r.delete_after := ${deleteAfterCase("now_ms + (c->>'ttlMs')::bigint")};
        r.holders := ${CLAIMED_HOLDERS};
        r.token := ${CLAIMED_TOKEN};
        r.decision := ${DECISION};
        reply := jsonb_build_object('kind', 'granted', 'token', r.holders->0->'token', 'tokenLast', r.token,
          'acquiredAt', now_ms, 'expiresAt', r.holders->0->'expiresAt', ${REPLY});`;

const RENEW = `
        block := NULL;
        changed := ${WANTS_BLOCK} OR ${RENEWED_UNTIL} > (r.holders->0->>'expiresAt')::bigint;
        IF changed THEN
          r.delete_after := ${deleteAfterCase(RENEWED_UNTIL)};
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
        r.delete_after := ${deleteAfterCase('now_ms')};
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
