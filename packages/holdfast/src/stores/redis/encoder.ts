/**
 * Commands as the script's arguments. Every argument costs client and server a microsecond or two, so the first one has an
 * entry per command, and commands that differ only in key and number share the arguments with their terms.
 *
 * An entry is a letter of lua/layout.ts, the place of the terms among the arguments in two digits, and the hold's number
 * in four, or in eight if a number of the call needs them. The digits are of seven bits, one byte each, which is text in
 * every encoding and needs no parsing of decimals.
 *
 * Terms are numbers, a blank after each, then texts. If there are several texts, their lengths in bytes are among the
 * numbers. Null is an empty text. Nearly every claim is of one permit of one, with texts of less than 128 bytes: its texts
 * are as the record stores them, each after its length, and the next argument is the time to live of the record.
 */
import { type Claim, type Command, KEEP_MS, type Release, type Renew } from '../../protocol/index.js';
import { COMMANDS } from './lua/layout.js';

/** Commands that are alike have the same terms. */
interface Terms {
  readonly letter: string;
  readonly words: readonly string[];
  /** The call that they were last sent with, and the letter and their place in it. */
  call: number;
  placed: string;
}

type Letter = keyof typeof COMMANDS;

function termsOf(letter: Letter, ...words: readonly string[]): Terms {
  return { letter: String.fromCharCode(COMMANDS[letter]), words, call: 0, placed: '' };
}

/** Numbers below it have four digits. */
const FOUR_DIGITS = 2 ** 28;

function fourDigits(number: number): string {
  return String.fromCharCode(number >>> 21, (number >>> 14) & 127, (number >>> 7) & 127, number & 127);
}

function placedAt({ letter }: Terms, place: number): string {
  return letter + String.fromCharCode(place >>> 7, place & 127);
}

/** The argument by which a call only reads the records of this many keys. */
export function encodeReads(count: number): string {
  return (placedAt(termsOf('READ'), 0) + fourDigits(0)).repeat(count);
}

/** Encodes the commands of a call. Records store inboxes as channels: `channelPrefix` and the inbox. */
export function commandEncoder(channelPrefix: string): (commands: readonly Command[]) => readonly string[] {
  let calls = 0;
  let claim: Claim | null = null;
  let claimTerms = termsOf('CLAIM');
  let release: Release | null = null;
  let releaseTerms = termsOf('RELEASE');
  let renew: Renew | null = null;
  let renewTerms = termsOf('RENEW');

  /** The same object for a command that is like the last one of its kind. */
  function termsFor(command: Command): Terms {
    switch (command.kind) {
      case 'claim':
        if (!claim || !areAlikeClaims(command, claim)) {
          claimTerms = claimTermsOf(command, channelPrefix);
          claim = command;
        }
        return claimTerms;
      case 'release':
        if (!release || !areAlikeReleases(command, release)) {
          releaseTerms = releaseTermsOf(command);
          release = command;
        }
        return releaseTerms;
      case 'renew':
        if (!renew || !areAlikeRenewals(command, renew)) {
          renewTerms = renewTermsOf(command);
          renew = command;
        }
        return renewTerms;
      case 'evict':
        return termsOf('EVICT', `${command.fromToken ?? 0} ${command.upToToken} ${command.reason ?? ''}`);
    }
  }

  return (commands) => {
    calls += 1;
    const words = [''];
    const isWide = commands.some((command) => numberOf(command) >= FOUR_DIGITS);
    let entries = '';
    for (const command of commands) {
      const terms = termsFor(command);
      if (terms.call !== calls) {
        terms.call = calls;
        terms.placed = placedAt(terms, words.length + 1);
        words.push(...terms.words);
      }
      const number = numberOf(command);
      const high = isWide ? fourDigits(Math.floor(number / FOUR_DIGITS)) : '';
      entries += terms.placed + high + fourDigits(number % FOUR_DIGITS);
    }
    words[0] = entries;
    return words;
  };
}

function numberOf(command: Command): number {
  return command.kind === 'evict' ? 0 : command.hold.number;
}

function claimTermsOf(claim: Claim, channelPrefix: string): Terms {
  const { hold, owner, permits, capacity, ttlMs, queue, inbox, metadata } = claim;
  const texts = [hold.process, owner, inbox === null ? '' : channelPrefix + inbox, metadata ?? ''];
  const lengths = texts.map((text) => Buffer.byteLength(text));
  if (permits === 1 && capacity === 1 && lengths.every((length) => length < 128)) {
    const stored = texts.map((text, index) => `\0${String.fromCharCode(lengths[index] as number)}${text}`);
    return termsOf(queue ? 'ONE_QUEUED' : 'ONE', stored.join(''), String(ttlMs + KEEP_MS));
  }
  const numbers = [permits, capacity, ttlMs, queue ? 1 : 0, ...lengths.slice(0, 3)];
  return termsOf('CLAIM', `${numbers.join(' ')} ${texts.join('')}`);
}

function releaseTermsOf({ hold, minHoldMs }: Release): Terms {
  if (minHoldMs === 0) return termsOf('RELEASE', hold.process);
  return termsOf('RELEASE_LATER', `${minHoldMs} ${hold.process}`);
}

function renewTermsOf({ hold, ttlMs, block, added }: Renew): Terms {
  const addition = added ? `${added.ms} ${added.expiresAt}` : '0 -1';
  return termsOf('RENEW', `${ttlMs} ${block ? 1 : 0} ${addition} ${hold.process}`);
}

function areAlikeClaims(one: Claim, other: Claim): boolean {
  return (
    one.hold.process === other.hold.process &&
    one.owner === other.owner &&
    one.permits === other.permits &&
    one.capacity === other.capacity &&
    one.ttlMs === other.ttlMs &&
    one.queue === other.queue &&
    one.inbox === other.inbox &&
    one.metadata === other.metadata
  );
}

function areAlikeReleases(one: Release, other: Release): boolean {
  return one.hold.process === other.hold.process && one.minHoldMs === other.minHoldMs;
}

function areAlikeRenewals(one: Renew, other: Renew): boolean {
  return (
    one.hold.process === other.hold.process &&
    one.ttlMs === other.ttlMs &&
    one.block === other.block &&
    !one.added &&
    !other.added
  );
}
