/**
 * Commands as the script's arguments, and the script's answers as replies.
 *
 * A command is one text, because every further argument costs client and server a microsecond or two. Its numbers come
 * first, a blank after each, then its texts; where there are several texts, their lengths in bytes are among the
 * numbers. Null is an empty text. A command that differs from the first of its kind in the call only by key and number is
 * its letter in lower case and that number.
 *
 * Clients give numbers as text, texts as buffers, or the types of RESP3: all of them are read alike.
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

/**
 * The texts of a call's commands, and after them, where commands are alike, the claim, renewal and release that those are
 * like. Records store inboxes as channels: `channelPrefix` and the inbox.
 */
export function encodeCommands(commands: readonly Command[], channelPrefix: string): readonly string[] {
  const [only] = commands;
  if (only && commands.length === 1) return [encoded(only, channelPrefix)];
  const first: { [K in Command['kind']]?: Command } = {};
  const texts = commands.map((command) => {
    first[command.kind] ??= command;
    return likeness(command, first[command.kind] ?? command) ?? encoded(command, channelPrefix);
  });
  for (const like of [first.claim, first.renew, first.release]) {
    texts.push(like ? encoded(like, channelPrefix) : '');
  }
  return texts;
}

function encoded(command: Command, channelPrefix: string): string {
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
      return `E ${command.fromToken ?? 0} ${command.upToToken} ${command.reason ?? ''}`;
  }
}

/** The command as its number alone, where it differs in nothing else but the key; else null. */
function likeness(command: Command, first: Command): string | null {
  if (command.kind === 'claim' && first.kind === 'claim') {
    const isAlike =
      command.hold.process === first.hold.process &&
      command.owner === first.owner &&
      command.permits === first.permits &&
      command.capacity === first.capacity &&
      command.ttlMs === first.ttlMs &&
      command.queue === first.queue &&
      command.inbox === first.inbox &&
      command.metadata === first.metadata;
    return isAlike ? `c${command.hold.number}` : null;
  }
  if (command.kind === 'renew' && first.kind === 'renew') {
    const isAlike =
      command.hold.process === first.hold.process &&
      command.ttlMs === first.ttlMs &&
      command.block === first.block &&
      !command.added &&
      !first.added;
    return isAlike ? `n${command.hold.number}` : null;
  }
  if (command.kind === 'release' && first.kind === 'release') {
    const isAlike = command.hold.process === first.hold.process && command.minHoldMs === first.minHoldMs;
    return isAlike ? `r${command.hold.number}` : null;
  }
  return null;
}

export interface Answers {
  /** The time of the call. */
  readonly now: number;
  /** One answer per command: a list, or a text for a usual one. Null where all are usual. */
  readonly items: readonly unknown[] | null;
}

export function answersOf(reply: unknown, count: number): Answers {
  const [time, ...items] = Array.isArray(reply) ? reply : textOf(reply).split(';');
  const now = numberOf(time);
  if (!Number.isSafeInteger(now) || (items.length > 0 && items.length !== count)) throw invalidReply(reply);
  return { now, items: items.length > 0 ? items : null };
}

/** The reply to the nth command of a call. Throws where the script could not decide. `redisKey`: the key with its prefix. */
export function replyOf({ now, items }: Answers, index: number, command: Command, redisKey: string): Reply {
  const answer = items ? items[index] : '';
  const reply = Array.isArray(answer) ? fullReplyOf(answer, now) : usualReplyOf(textOf(answer), now, command);
  if (reply) return reply;
  throw Array.isArray(answer) ? scriptError(answer, command.key, redisKey) : invalidReply(answer);
}

/** Decision and token begin with the time, unless the answer says how far they are from it; the command says the rest. */
function usualReplyOf(text: string, now: number, command: Command): Reply | null {
  const [decisionAfter, tokenAfter] = text.split(' ');
  const decision = now * 1_000 + Number(decisionAfter);
  const token = now * 1_000 + Number(tokenAfter ?? 0);
  if (Number.isNaN(decision + token)) return null;
  const decided = { now, decision, othersWait: false };
  switch (command.kind) {
    case 'claim': {
      const tokenLast = command.permits === command.capacity ? token + TOKEN_BLOCK - 1 : token;
      const expiresAt = now + command.ttlMs;
      return { kind: 'granted', token, tokenLast, acquiredAt: now, expiresAt, ...decided };
    }
    case 'renew': {
      const block = command.block ? { token, tokenLast: token + TOKEN_BLOCK - 1 } : null;
      return { kind: 'renewed', expiresAt: now + command.ttlMs, block, ...decided };
    }
    case 'release':
      return { kind: 'released', held: true, ...decided };
    case 'evict':
      return null;
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
  return isForeign(listOf(answers.items?.[index]));
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
