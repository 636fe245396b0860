/**
 * Commands as the script's arguments, and the script's answers as replies.
 *
 * A command is one text, because every further argument costs client and server a microsecond or two. Its numbers come
 * first, a blank after each, then its texts; where there are several texts, their lengths in bytes are among the
 * numbers. Null is an empty text. An answer is a text or a list (see script.ts). Clients give numbers as text, texts as
 * buffers, or the types of RESP3: all of them are read alike.
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
import { ANSWER } from './lua/layout.js';

/** The command that only reads the record. */
export const READ = 'L';

/** Records store inboxes as channels: `channelPrefix` and the inbox. */
export function encodeCommand(command: Command, channelPrefix: string): string {
  switch (command.kind) {
    case 'claim': {
      const { hold, owner, permits, capacity, ttlMs, queue, inbox, metadata } = command;
      const { process, number } = hold;
      const channel = inbox === null ? '' : channelPrefix + inbox;
      const lengths = `${Buffer.byteLength(process)} ${Buffer.byteLength(owner)} ${Buffer.byteLength(channel)}`;
      const numbers = `${number} ${permits} ${capacity} ${ttlMs} ${queue ? 1 : 0} ${lengths}`;
      return `C ${numbers} ${process}${owner}${channel}${metadata ?? ''}`;
    }
    case 'renew': {
      const { hold, ttlMs, block, added } = command;
      const addition = added ? `${added.ms} ${added.expiresAt}` : '0 -1';
      return `N ${hold.number} ${ttlMs} ${block ? 1 : 0} ${addition} ${hold.process}`;
    }
    case 'release':
      return `R ${command.hold.number} ${command.minHoldMs} ${command.hold.process}`;
    case 'evict':
      return `E ${command.upToToken}`;
  }
}

/** The time of the call, and then one answer per command. */
export type Answers = readonly unknown[];

export function answersOf(reply: unknown, count: number): Answers {
  const answers = Array.isArray(reply) ? reply : textOf(reply).split(';');
  if (answers.length !== count + 1) throw invalidReply(reply);
  return answers;
}

export function timeOf(answers: Answers): number {
  return numberOf(answers[0]);
}

/** The reply to the nth command of a call. Throws where the script could not decide. `redisKey`: the key with its prefix. */
export function replyOf(answers: Answers, index: number, command: Command, redisKey: string): Reply {
  const now = timeOf(answers);
  const answer = answers[index + 1];
  if (!Array.isArray(answer)) {
    const reply = fastReplyOf(textOf(answer).split(' '), now, command);
    if (reply) return reply;
    throw invalidReply(answer);
  }
  const reply = fullReplyOf(answer, now);
  if (reply) return reply;
  throw scriptError(answer, command.key, redisKey);
}

/** An answer of the fast path: a code, then the decision and the token as distances from the time. */
function fastReplyOf(items: readonly string[], now: number, command: Command): Reply | null {
  const code = Number(items[0]);
  const decision = now * 1_000 + Number(items[1]);
  const token = now * 1_000 + Number(items[2]);
  if (command.kind === 'claim' && code === ANSWER.FAST_GRANTED) {
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
  if (command.kind === 'release' && code === ANSWER.FAST_RELEASED) {
    return { kind: 'released', held: true, now, decision, othersWait: false };
  }
  if (command.kind === 'renew' && code === ANSWER.FAST_RENEWED) {
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

/** Whether the nth key of a call holds something that is not a record. */
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
export function scriptError(answer: readonly unknown[], key: string, redisKey: string): Error {
  const code = numberOf(answer[0]);
  const text = answer.length > 1 ? textOf(answer[1]) : '';
  if (code === ANSWER.OTHER_VERSION) return newerRecord(Number(text), key);
  if (isForeign(answer)) {
    return new UnsupportedError(
      `The Redis key "${redisKey}" is not a lock of Holdfast. ` +
        'Use another prefix, or delete the key if nobody needs it. Nothing was changed.',
      { key },
    );
  }
  if (code === ANSWER.FAILED) return new Error(`Redis could not decide on "${key}": ${text}`);
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
