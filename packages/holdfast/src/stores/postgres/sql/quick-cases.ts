/**
 * The usual cases of `decide` as expressions over columns, for all commands of a statement at once: a claim of a free key,
 * a claim that is refused by the only holder and does not queue, a renewal and a release by the only holder; no waiters,
 * nothing expired, and a clock that has not gone back. `_decide` handles everything else, and must give the same results.
 *
 * `c` is the command, `r` the row before, `now_ms` the time, and `outcome` the number of the reply's kind.
 */
import { KEEP_MS, MARKS_MAX, STATE_VERSION, TOKEN_BLOCK, WINDOW_MS } from '../../../protocol/index.js';
import { ABSENT, COLUMNS, type Column, FAR_MS, onGrid } from './records.js';

/** The members of a command, with their types. */
export const COMMAND: string = `kind text, key text, hold jsonb, owner text, permits bigint, capacity bigint, "ttlMs" bigint, queue boolean,
    inbox text, metadata text, block boolean, added jsonb, "minHoldMs" bigint`;

/** The earlier marks allow a quick case if none is expired, and if none of them ends this hold. */
const OVER = '$[*] ? (@.until <= $now || (@.process == $process && @.number >= $number))';
const EARLIER_MARKS_ALLOW = `(r.ended IS NULL OR (jsonb_array_length(r.ended) < ${MARKS_MAX - 1}
      AND NOT jsonb_path_exists(r.ended, '${OVER}', c.hold || jsonb_build_object('now', now_ms))))`;
const MARK_IS_OVER = '(r.ended_until <= now_ms) IS TRUE';
const HAS_ENDED = `(r.ended_process = c.process AND r.ended_number >= c.number AND r.ended_until > now_ms) IS TRUE`;

/** The last decision is not in the future, and tokens are not far ahead. */
const IN_TIME = `r.decision < (now_ms + 1) * 1000 AND r.token < (now_ms + ${KEEP_MS - 10_000}) * 1000`;
const IS_USUAL_BUT_WAITERS = `r.version BETWEEN 1 AND ${STATE_VERSION} AND r.holders IS NULL AND r.rests IS NULL AND r.evictions IS NULL
      AND ${IN_TIME} AND NOT ${HAS_ENDED} AND ${EARLIER_MARKS_ALLOW}`;
const IS_USUAL = `r.waiters IS NULL AND ${IS_USUAL_BUT_WAITERS}`;

const IS_OWN = 'r.process = c.process AND r.number = c.number';
const CAN_GRANT = `r.process IS NULL AND c.permits <= c.capacity AND ${IS_USUAL}`;
const CAN_REFUSE = `NOT c.queue AND r.expires_at > now_ms AND NOT (${IS_OWN})
      AND r.permits + c.permits > least(r.capacity, c.capacity) AND NOT ${MARK_IS_OVER} AND ${IS_USUAL}`;
const CAN_RENEW = `${IS_OWN} AND r.expires_at > now_ms AND NOT ${MARK_IS_OVER} AND ${IS_USUAL}`;
const CAN_RELEASE = `${IS_OWN} AND r.expires_at > now_ms AND r.acquired_at + c."minHoldMs" <= now_ms AND ${IS_USUAL}`;

/** Whether no waiter from the nth on is woken, expired or of this process. */
const areQuiet = (from: number): string => `NOT jsonb_path_exists(r.waiters,
      '$[${from} to last] ? (@.expiresAt <= $now || @.wokenAt != null || @.hold.process == $process)',
      c.hold || jsonb_build_object('now', now_ms))`;
const FIRST_IS_EXCLUSIVE = "r.waiters->0->'permits' = r.waiters->0->'capacity'";
/** A release passes an exclusive key to the first waiter. Waiters behind an exclusive one are not woken. */
const CAN_PASS_ON = `r.waiters IS NOT NULL AND ${IS_OWN} AND r.expires_at > now_ms AND r.permits = r.capacity
      AND r.acquired_at + c."minHoldMs" <= now_ms AND ${FIRST_IS_EXCLUSIVE} AND ${areQuiet(0)} AND ${IS_USUAL_BUT_WAITERS}`;
/** The first waiter was woken, and claims. */
const CAN_GRANT_FIRST = `r.process IS NULL AND r.waiters->0->'hold' = c.hold AND ${FIRST_IS_EXCLUSIVE}
      AND c.permits = c.capacity AND (r.waiters->0->>'wokenAt')::bigint + ${WINDOW_MS} > now_ms
      AND (r.waiters->0->>'expiresAt')::bigint > now_ms AND ${areQuiet(1)} AND ${IS_USUAL_BUT_WAITERS}`;

/** Numbers, because every column of a batch depends on them, and texts are slower to compare. */
export const OUTCOMES = { granted: 1, renewed: 2, released: 3, busy: 4 };

/** Null if no quick case applies. */
export const OUTCOME: string = `CASE c.kind
      WHEN 'claim' THEN CASE WHEN ${CAN_GRANT} THEN ${OUTCOMES.granted} WHEN ${CAN_REFUSE} THEN ${OUTCOMES.busy} END
      WHEN 'release' THEN CASE WHEN ${CAN_RELEASE} THEN ${OUTCOMES.released} END
      WHEN 'renew' THEN CASE WHEN c.added IS NULL AND ${CAN_RENEW} THEN ${OUTCOMES.renewed} END
    END`;

const TOKEN = 'greatest(r.token + 1, now_ms * 1000)';
const DECISION = 'greatest(r.decision + 1, now_ms * 1000)';
const WANTS_BLOCK = '(c.block AND r.permits = r.capacity)';
const EXTENDS = `(${WANTS_BLOCK} OR r.expires_at < now_ms + c."ttlMs")`;

/** Whether the row changes. */
export const CHANGED = `CASE outcome WHEN ${OUTCOMES.busy} THEN false WHEN ${OUTCOMES.renewed} THEN ${EXTENDS} ELSE outcome IS NOT NULL END`;

/** The marks before, without those of this process, as JSON. */
const EARLIER_MARKS = `CASE WHEN r.ended IS NULL AND (r.ended_process = c.process OR r.ended_until <= now_ms) IS NOT FALSE THEN NULL
      ELSE nullif(jsonb_path_query_array(coalesce(r.ended, '[]'), '$[*] ? (@.process != $process)', c.hold)
        || CASE WHEN r.ended_process <> c.process AND r.ended_until > now_ms THEN jsonb_build_array(jsonb_build_object(
          'process', r.ended_process, 'number', r.ended_number, 'until', r.ended_until)) ELSE '[]' END, '[]') END`;

/** When the row may be deleted. A release lowers it only from far above, so that the indexed column changes rarely. */
const GRANTED_DELETE_AFTER = onGrid(`now_ms + c."ttlMs" + ${KEEP_MS}`);

const DECIDED = { version: String(STATE_VERSION), decision: DECISION, previous: 'r.decision' };

/** The columns that change, by outcome. */
const NEXT: Record<'granted' | 'renewed' | 'released', Partial<Record<Column, string>>> = {
  granted: {
    ...DECIDED,
    token: `${TOKEN} + CASE WHEN c.permits = c.capacity THEN ${TOKEN_BLOCK - 1} ELSE 0 END`,
    delete_after: GRANTED_DELETE_AFTER,
    process: 'c.process',
    number: 'c.number',
    owner: 'c.owner',
    permits: 'c.permits',
    capacity: 'c.capacity',
    hold_token: TOKEN,
    inbox: 'c.inbox',
    acquired_at: 'now_ms',
    expires_at: 'now_ms + c."ttlMs"',
    metadata: 'c.metadata',
    ended_process: 'CASE WHEN r.ended_until > now_ms THEN r.ended_process END',
    ended_number: 'CASE WHEN r.ended_until > now_ms THEN r.ended_number END',
    ended_until: 'CASE WHEN r.ended_until > now_ms THEN r.ended_until END',
  },
  renewed: {
    ...DECIDED,
    decision: `CASE WHEN ${EXTENDS} THEN ${DECISION} ELSE r.decision END`,
    token: `CASE WHEN ${WANTS_BLOCK} THEN ${TOKEN} + ${TOKEN_BLOCK - 1} ELSE r.token END`,
    delete_after: `greatest(r.delete_after, ${GRANTED_DELETE_AFTER})`,
    expires_at: 'greatest(r.expires_at, now_ms + c."ttlMs")',
  },
  released: {
    ...DECIDED,
    delete_after: `least(r.delete_after, ${onGrid(`now_ms + ${KEEP_MS + FAR_MS}`)})`,
    process: 'NULL',
    number: 'NULL',
    owner: 'NULL',
    permits: 'NULL',
    capacity: 'NULL',
    hold_token: 'NULL',
    inbox: 'NULL',
    acquired_at: 'NULL',
    expires_at: 'NULL',
    metadata: 'NULL',
    ended_process: 'c.process',
    ended_number: 'c.number',
    ended_until: `now_ms + ${KEEP_MS}`,
    ended: EARLIER_MARKS,
  },
};

/** The row after the command, for every outcome. */
export const NEXT_ROW = COLUMNS.map((column) => {
  const cases = (['granted', 'renewed', 'released'] as const).flatMap((outcome) =>
    NEXT[outcome][column] === undefined ? [] : [`WHEN ${OUTCOMES[outcome]} THEN ${NEXT[outcome][column]}`],
  );
  return cases.length === 0
    ? `r.${column}`
    : `CASE outcome ${cases.join(' ')} ELSE r.${column} END AS ${column}`;
}).join(',\n        ');

/** Composed as text: functions that build JSON take several times as long. `r` is the row after the command. */
const reply = (kind: string, ...members: readonly string[]): string =>
  `concat('{"kind":"${kind}","now":', now_ms, ',"decision":', r.decision, ',"othersWait":', CASE WHEN r.waiters IS NULL THEN 'false' ELSE 'true' END, ${members.join(', ')}, '}')`;

const REPLIES = {
  granted: reply(
    'granted',
    `',"token":', r.hold_token, ',"tokenLast":', r.token, ',"acquiredAt":', r.acquired_at, ',"expiresAt":', r.expires_at`,
  ),
  renewed: reply(
    'renewed',
    `',"expiresAt":', r.expires_at, ',"block":'`,
    `CASE WHEN ${WANTS_BLOCK} THEN concat('{"token":', r.token - ${TOKEN_BLOCK - 1}, ',"tokenLast":', r.token, '}') ELSE 'null' END`,
  ),
  released: reply('released', `',"held":true'`),
  busy: reply(
    'busy',
    `',"position":null,"freeInMs":', r.expires_at - now_ms`,
    `',"holders":[{"resting":false,"owner":', to_json(r.owner), ',"permits":', r.permits, ',"capacity":', r.capacity`,
    `',"token":', r.hold_token, ',"acquiredAt":', r.acquired_at, ',"expiresAt":', r.expires_at`,
    `',"metadata":', coalesce(to_json(r.metadata)::text, 'null'), '}]'`,
  ),
};
export const REPLY = `CASE outcome ${(['granted', 'renewed', 'released', 'busy'] as const)
  .map((outcome) => `WHEN ${OUTCOMES[outcome]} THEN ${REPLIES[outcome]}`)
  .join('\n      ')} END`;

const update = (
  schema: string,
  outcome: keyof typeof NEXT,
  condition: string,
  more: Partial<Record<Column, string>> = {},
): string => `
    UPDATE ${schema}.records AS r
    SET ${Object.entries({ ...NEXT[outcome], ...more })
      .map(([column, value]) => `${column} = ${value}`)
      .join(', ')}
    WHERE r.key = c.key AND ${condition} RETURNING ${REPLIES[outcome]} INTO answer;`;

/**
 * For `apply_one`, whose parameters are the command: sets `answer`, or changes nothing. An UPDATE waits for a locked row
 * and checks it again.
 */
export const singleCommand = (schema: string): string =>
  `
  IF kind = 'claim' THEN${update(schema, 'granted', CAN_GRANT)}
    IF answer IS NULL THEN
      SELECT ${REPLIES.busy} INTO answer FROM ${schema}.records AS r WHERE r.key = c.key AND ${CAN_REFUSE};
    END IF;
    IF answer IS NULL AND permits <= capacity THEN
      INSERT INTO ${schema}.records AS r (key, ${Object.keys(NEXT.granted).join(', ')})
      SELECT c.key, ${Object.values(NEXT.granted).join(', ')} FROM (SELECT ${ABSENT}) AS r(${COLUMNS.join(', ')})
      ON CONFLICT DO NOTHING RETURNING ${REPLIES.granted} INTO answer;
    END IF;
    IF answer IS NULL THEN${update(schema, 'granted', CAN_GRANT_FIRST, {
      waiters: "nullif(r.waiters - 0, '[]')",
      delete_after: NEXT.renewed.delete_after ?? '',
    })}
    END IF;
  ELSIF kind = 'release' THEN${update(schema, 'released', CAN_RELEASE)}
    IF answer IS NULL THEN${update(schema, 'released', CAN_PASS_ON, {
      waiters: "jsonb_set(r.waiters, '{0,wokenAt}', to_jsonb(now_ms))",
    }).replace(' INTO answer;', ", r.waiters->0->>'inbox' INTO answer, woken;")}
      IF hints AND woken IS NOT NULL THEN PERFORM ${schema}._notify(woken, 'turn', key); END IF;
    END IF;
  ELSIF kind = 'renew' THEN${update(schema, 'renewed', `${EXTENDS} AND ${CAN_RENEW}`)}
  END IF;`
    .replaceAll('c.hold', "jsonb_build_object('process', c.process, 'number', c.number)")
    .replaceAll(/\bc\./g, 'apply_one.');
