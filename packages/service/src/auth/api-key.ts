/**
 * API keys: `hfk_ID_SECRET`. The id identifies the API key and may be shown; the secret has 256 bits and only its user has
 * it. The service keeps a SHA-256 of the whole text: a secret that cannot be guessed needs no slow hash, and a slow hash
 * would let anybody keep the service busy. Digests are compared in constant time, and an unknown id takes as long as a
 * known one.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import { randomId } from '../clock.js';

export const KEY_PREFIX = 'hfk_';
export const KEY_ID = /^[0-9a-f]{12}$/;
const KEY = /^hfk_([0-9a-f]{12})_[A-Za-z0-9_-]{44}$/;
const HASH = /^sha256:[A-Za-z0-9_-]{43}$/;

export interface NewKey {
  readonly id: string;
  /** Shown once. */
  readonly text: string;
  /** Stored. */
  readonly hash: string;
}

export function newKey(): NewKey {
  const id = digestOf(randomId()).toString('hex').slice(0, 12);
  const text = `${KEY_PREFIX}${id}_${randomId()}${randomId()}`;
  return { id, text, hash: hashOf(text) };
}

/** The id in the text of an API key; null for other text. */
export function idIn(text: string): string | null {
  return KEY.exec(text)?.[1] ?? null;
}

export function isHash(text: string): boolean {
  return HASH.test(text);
}

export function hashOf(text: string): string {
  return `sha256:${digestOf(text).toString('base64url')}`;
}

/** The digest in the text of `hashOf`. */
export function digestIn(stored: string): Buffer {
  return Buffer.from(stored.slice('sha256:'.length), 'base64url');
}

const NOBODY = digestOf('nobody');
/** A shared buffer for the digest being checked: a new buffer for every request costs more than the hash itself. */
const given = Buffer.alloc(NOBODY.length);

/** Null for an unknown API key: the comparison takes as long. */
export function isKeyOf(text: string, stored: Buffer | null): boolean {
  given.write(hash('sha256', text, 'binary'), 'latin1');
  const isSame = timingSafeEqual(given, stored ?? NOBODY);
  return isSame && stored !== null;
}

function digestOf(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
