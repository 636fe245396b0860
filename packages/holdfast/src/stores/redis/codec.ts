/**
 * The script's answers as replies. Clients give numbers as text, texts as buffers, or the types of RESP3; this file reads
 * all of them.
 */
import { inspect } from 'node:util';
import {
  type Command,
  checkVersion,
  type HolderView,
  type Reply,
  TOKEN_BLOCK,
  UnsupportedError,
} from '../../protocol/index.js';
import { notExecuted } from '../clients/errors.js';
import { ANSWER, BEYOND_MAX } from './lua/layout.js';

export interface Answers {
  /** The time of the call. */
  readonly now: number;
  /** The time, then one answer per command: a list, or a number for a usual one. Null if all are 0. */
  readonly list: readonly unknown[] | null;
}

export function answersOf(reply: unknown, count: number): Answers {
  const list = Array.isArray(reply) ? reply : null;
  const now = numberOf(list ? list[0] : reply);
  if (!Number.isSafeInteger(now) || (list && list.length !== count + 1)) throw invalidReply(reply);
  return { now, list };
}

/** The answer to the nth command of a call. */
export function answerAt({ list }: Answers, index: number): unknown {
  return list ? list[index + 1] : 0;
}

/** The reply to the nth command of a call. Throws if the script could not decide. */
export function replyOf(answers: Answers, index: number, command: Command, keyPrefix: string): Reply {
  const answer = answerAt(answers, index);
  if (!Array.isArray(answer)) {
    const beyond = numberOf(answer);
    if (Number.isNaN(beyond)) throw invalidReply(answer);
    return usualReplyOf(beyond, answers.now, command);
  }
  const reply = fullReplyOf(answer, answers.now);
  if (reply) return reply;
  throw scriptError(answer, command.key, keyPrefix + command.key);
}

/** Decision and token begin with the time. The answer has their distance from it; the rest is in the command. */
function usualReplyOf(beyond: number, now: number, command: Command): Reply {
  const tokenBeyond = Math.floor(beyond / BEYOND_MAX);
  const token = now * 1_000 + tokenBeyond;
  const decision = now * 1_000 + beyond - tokenBeyond * BEYOND_MAX;
  switch (command.kind) {
    case 'claim': {
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
    case 'renew': {
      const block = command.block ? { token, tokenLast: token + TOKEN_BLOCK - 1 } : null;
      return { kind: 'renewed', expiresAt: now + command.ttlMs, block, now, decision, othersWait: false };
    }
    case 'release':
      return { kind: 'released', held: true, now, decision, othersWait: false };
    case 'evict':
      throw invalidReply(beyond);
  }
}

function fullReplyOf(answer: readonly unknown[], now: number): Reply | null {
  const decided = { now, decision: numberOf(answer[1]), othersWait: numberOf(answer[2]) === 1 };
  const third = numberOf(answer[3]);
  switch (numberOf(answer[0])) {
    case ANSWER.GRANTED: {
      const [tokenLast, acquiredAt, expiresAt] = answer.slice(4).map(numberOf);
      if (tokenLast === undefined || acquiredAt === undefined || expiresAt === undefined) return null;
      return { kind: 'granted', token: third, tokenLast, acquiredAt, expiresAt, ...decided };
    }
    case ANSWER.BUSY: {
      const place = numberOf(answer[4]);
      const position = place < 0 ? null : place;
      const holders = listOf(answer[5]).map(holderViewOf);
      return { kind: 'busy', holders, freeInMs: third, position, ...decided };
    }
    case ANSWER.WITHDRAWN:
      return { kind: 'withdrawn', ...decided };
    case ANSWER.RENEWED:
      return { kind: 'renewed', expiresAt: third, block: blockOf(answer), ...decided };
    case ANSWER.LOST:
      // A fourth item: it was evicted.
      return { kind: 'lost', ...decided, ...(third === 1 && { evicted: { reason: textOrNull(answer[4]) } }) };
    case ANSWER.RELEASED:
      return { kind: 'released', held: third === 1, ...decided };
    case ANSWER.EVICTED:
      return { kind: 'evicted', count: third, ...decided };
    default:
      return null;
  }
}

/** Whether the nth key of a call holds something that is not a record. */
export function isForeignAt(answers: Answers, index: number): boolean {
  return isForeign(listOf(answerAt(answers, index)));
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
export function scriptError(answer: readonly unknown[], key: string, redisKey: string): Error {
  const code = numberOf(answer[0]);
  const text = answer.length > 1 ? textOf(answer[1]) : '';
  if (code === ANSWER.OTHER_VERSION) return newerRecord(Number(text), key);
  if (isForeign(answer)) {
    return new UnsupportedError(
      `The Redis key "${redisKey}" is not a lock of Holdfast. ` +
        'Use another prefix, or delete the key if it is not needed. Nothing was changed.',
      { key },
    );
  }
  if (code === ANSWER.FAILED) {
    // Nothing was written: the write is the last step of a command that can fail.
    return notExecuted(new Error(text.trim())) ?? new Error(`Redis could not decide on "${key}": ${text}`);
  }
  return invalidReply(answer);
}

function newerRecord(version: number, key: string): Error {
  try {
    checkVersion(version, key);
  } catch (error) {
    if (error instanceof Error) return error;
    throw error;
  }
  return new Error(`The script refused the record of "${key}", which has format ${version}.`);
}

function invalidReply(reply: unknown): Error {
  return new Error(`Redis sent an invalid reply: ${inspect(reply).slice(0, 200)}`);
}

export function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw invalidReply(value);
}

export function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : Number(textOf(value));
}

export function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return Buffer.isBuffer(value) ? value.toString('utf8') : String(value);
}

export function isAbsent(value: unknown): boolean {
  return value === null || value === undefined || value === false;
}

export function textOrNull(value: unknown): string | null {
  return isAbsent(value) ? null : textOf(value);
}
