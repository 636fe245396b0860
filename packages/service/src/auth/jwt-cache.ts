/**
 * Tokens that were found good a moment ago. Checking a signature takes longer than everything else about a request, and
 * clients send the same token again and again. Bounded in number and in time, so that a key that the issuer takes back
 * ends soon; known by digest, so that no token is kept.
 */
import { createHash } from 'node:crypto';
import { monotonicMs, wallMs } from '../clock.js';
import type { Right } from './rights.js';

export interface Bearer {
  readonly subject: string;
  readonly rights: readonly Right[];
  /** Epoch milliseconds, with the tolerance. */
  readonly untilMs: number;
}

const REMEMBERED_MAX = 1_000;

export class SeenTokens {
  readonly #ageMsMax: number;
  readonly #seen = new Map<string, { readonly bearer: Bearer; readonly atMs: number }>();

  constructor(ageMsMax: number) {
    this.#ageMsMax = ageMsMax;
  }

  find(token: string): Bearer | null {
    const name = nameOf(token);
    const found = this.#seen.get(name);
    if (!found) return null;
    const isGood = monotonicMs() - found.atMs < this.#ageMsMax && wallMs() < found.bearer.untilMs;
    if (isGood) return found.bearer;
    this.#seen.delete(name);
    return null;
  }

  add(token: string, bearer: Bearer): void {
    if (this.#seen.size >= REMEMBERED_MAX) {
      const [oldest] = this.#seen.keys();
      if (oldest !== undefined) this.#seen.delete(oldest);
    }
    this.#seen.set(nameOf(token), { bearer, atMs: monotonicMs() });
  }
}

function nameOf(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}
