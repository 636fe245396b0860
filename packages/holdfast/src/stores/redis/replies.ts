/** What the script answers, made into replies. */
import {
  type Command,
  checkVersion,
  type HolderView,
  type Reply,
  TOKEN_BLOCK,
  UnsupportedError,
} from '../../protocol/index.js';
import { listOf, notUnderstood, numberOf, textOf, textOrNull } from './items.js';
import { ANSWER } from './lua/layout.js';

/** The time at which a call was decided, and then an answer for each of its commands: a text or a list. */
export type Answers = readonly unknown[];

export function answersOf(reply: unknown, count: number): Answers {
  const answers = Array.isArray(reply) ? reply : textOf(reply).split(';');
  if (answers.length !== count + 1) throw notUnderstood(reply);
  return answers;
}

export function timeOf(answers: Answers): number {
  return numberOf(answers[0]);
}

/** To the nth command of a call. Throws where the script could not decide. `redisKey` is the key as Redis has it. */
export function replyOf(answers: Answers, index: number, command: Command, redisKey: string): Reply {
  const now = timeOf(answers);
  const answer = answers[index + 1];
  if (!Array.isArray(answer)) {
    const reply = quickReplyOf(textOf(answer).split(' '), now, command);
    if (reply) return reply;
    throw notUnderstood(answer);
  }
  const reply = fullReplyOf(answer, now);
  if (reply) return reply;
  throw troubleOf(answer, command.key, redisKey);
}

/** What nobody stood in the way of: a code, the decision and the token, by their distance from the time. */
function quickReplyOf(items: readonly string[], now: number, command: Command): Reply | null {
  const code = Number(items[0]);
  const decision = now * 1_000 + Number(items[1]);
  const token = now * 1_000 + Number(items[2]);
  if (command.kind === 'claim' && code === ANSWER.JUST_GRANTED) {
    const tokenLast = command.permits === command.capacity ? token + TOKEN_BLOCK - 1 : token;
    const expiresAt = now + command.ttlMs;
    return {
      kind: 'granted',
      token,
      tokenLast,
      acquiredAt: now,
      expiresAt,
      now,
      decision,
      othersWait: false,
    };
  }
  if (command.kind === 'release' && code === ANSWER.JUST_RELEASED) {
    return { kind: 'released', held: true, now, decision, othersWait: false };
  }
  if (command.kind === 'renew' && code === ANSWER.JUST_RENEWED) {
    const block = items.length > 2 ? { token, tokenLast: token + TOKEN_BLOCK - 1 } : null;
    return { kind: 'renewed', expiresAt: now + command.ttlMs, block, now, decision, othersWait: false };
  }
  return null;
}

function fullReplyOf(answer: readonly unknown[], now: number): Reply | null {
  const decision = numberOf(answer[1]);
  const othersWait = numberOf(answer[2]) === 1;
  switch (numberOf(answer[0])) {
    case ANSWER.GRANTED:
      return {
        kind: 'granted',
        token: numberOf(answer[3]),
        tokenLast: numberOf(answer[4]),
        acquiredAt: numberOf(answer[5]),
        expiresAt: numberOf(answer[6]),
        now,
        decision,
        othersWait,
      };
    case ANSWER.BUSY: {
      const position = numberOf(answer[4]);
      return {
        kind: 'busy',
        holders: listOf(answer[5]).map(holderViewOf),
        freeInMs: numberOf(answer[3]),
        position: position < 0 ? null : position,
        now,
        decision,
        othersWait,
      };
    }
    case ANSWER.WITHDRAWN:
      return { kind: 'withdrawn', now, decision, othersWait };
    case ANSWER.RENEWED:
      return {
        kind: 'renewed',
        expiresAt: numberOf(answer[3]),
        block: blockOf(answer),
        now,
        decision,
        othersWait,
      };
    case ANSWER.LOST:
      return { kind: 'lost', now, decision, othersWait };
    case ANSWER.RELEASED:
      return { kind: 'released', held: numberOf(answer[3]) === 1, now, decision, othersWait };
    case ANSWER.EVICTED:
      return { kind: 'evicted', count: numberOf(answer[3]), now, decision, othersWait };
    default:
      return null;
  }
}

/** Whether what the nth key of a call holds is no record at all. */
export function isForeignAt(answers: Answers, index: number): boolean {
  return isForeign(listOf(answers[index + 1]));
}

function isForeign(answer: readonly unknown[]): boolean {
  const code = numberOf(answer[0]);
  if (code === ANSWER.FAILED) return textOf(answer[1]).startsWith('WRONGTYPE');
  return code === ANSWER.FOREIGN;
}

function blockOf(answer: readonly unknown[]): { token: number; tokenLast: number } | null {
  return answer.length > 4 ? { token: numberOf(answer[4]), tokenLast: numberOf(answer[5]) } : null;
}

function holderViewOf(view: unknown): HolderView {
  const [owner, permits, capacity, token, acquiredAt, expiresAt, metadata, resting] = listOf(view);
  return {
    owner: textOf(owner),
    permits: numberOf(permits),
    capacity: numberOf(capacity),
    token: numberOf(token),
    acquiredAt: numberOf(acquiredAt),
    expiresAt: numberOf(expiresAt),
    metadata: textOrNull(metadata),
    resting: numberOf(resting) === 1,
  };
}

/** Why the script could not decide. */
export function troubleOf(answer: readonly unknown[], key: string, redisKey: string): Error {
  const code = numberOf(answer[0]);
  const text = answer.length > 1 ? textOf(answer[1]) : '';
  if (code === ANSWER.OTHER_VERSION) return newerRecord(Number(text), key);
  if (isForeign(answer)) {
    return new UnsupportedError(
      `The Redis key "${redisKey}" holds something that is no lock of Holdfast. ` +
        'Use another prefix, or delete it if nobody needs it. Nothing was changed.',
      { key },
    );
  }
  if (code === ANSWER.FAILED) return new Error(`Redis could not decide on "${key}": ${text}`);
  return notUnderstood(answer);
}

function newerRecord(version: number, key: string): Error {
  try {
    checkVersion(version, key);
  } catch (error) {
    if (error instanceof Error) return error;
    throw error;
  }
  return new Error(`The record of "${key}" has format ${version} and was refused all the same.`);
}
