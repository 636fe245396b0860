/**
 * The limits of one principal in this process: requests, locks held, holds of one lock, requests that wait, and how long a
 * lock may be held without renewal. They limit acquires. A renewal or a release is never refused, but a principal that
 * sends many without effect can acquire less, and its renewals and releases run one at a time.
 */
import { InvalidArgumentError } from 'holdfast';
import { Bucket, retryAfter } from '../http/bucket.js';
import type { TokensOf, Undertaking } from '../http/principal.js';
import { Problem } from '../http/problem.js';
import { Holdings } from './holdings.js';

export interface PrincipalLimits {
  /** Renewals and releases count only if they had no effect. */
  readonly requestsPerSecond: number;
  /** Requests at once, before the rate applies. */
  readonly requestBurst: number;
  /** The most locks held, acquires that may still be granted included. */
  readonly held: number;
  /** The same for one semaphore or read-write lock, whose record grows with every holder. */
  readonly heldOfKey: number;
  /** The most requests that wait. */
  readonly waiters: number;
  readonly ttlMsMax: number;
}

const PRINCIPAL_LIMITS: PrincipalLimits = {
  requestsPerSecond: 5_000,
  requestBurst: 10_000,
  held: 100_000,
  heldOfKey: 1_000,
  waiters: 5_000,
  ttlMsMax: 7 * 24 * 3_600_000,
};

export function principalLimitsOf(given: Partial<PrincipalLimits>): PrincipalLimits {
  for (const [name, value] of Object.entries(given)) {
    if (!(name in PRINCIPAL_LIMITS)) {
      throw new InvalidArgumentError(
        `There is no limit "${name}" for a principal. The limits are: ${Object.keys(PRINCIPAL_LIMITS).join(', ')}.`,
      );
    }
    if (!(Number.isFinite(value) && value > 0)) {
      throw new InvalidArgumentError(`The limit ${name} is ${String(value)}, but has to be above 0.`);
    }
  }
  return { ...PRINCIPAL_LIMITS, ...given };
}

export class Allowance {
  readonly #id: string;
  readonly #limits: PrincipalLimits;
  readonly #requests: Bucket;
  readonly #holdings = new Holdings();
  /** Resolves when the renewals and releases that started while the rate was exceeded are over. */
  #turnsOver: Promise<unknown> = Promise.resolve();

  constructor(id: string, limits: PrincipalLimits) {
    this.#id = id;
    this.#limits = limits;
    this.#requests = new Bucket(limits.requestsPerSecond, limits.requestBurst);
  }

  get ttlMsMax(): number {
    return this.#limits.ttlMsMax;
  }

  /** Whether the allowance can be forgotten. */
  get isIdle(): boolean {
    this.#holdings.forgetEnded();
    return this.#holdings.size === 0 && this.#requests.isFull;
  }

  request(): void {
    if (this.#requests.take()) return;
    throw new Problem(
      'rate-limited',
      `${this.#id} sends more than ${this.#limits.requestsPerSecond} requests per second.`,
      { headers: retryAfter(this.#requests.waitMs) },
    );
  }

  spend(requests: number): void {
    this.#requests.spend(requests);
  }

  turn(over: () => Promise<void>): Promise<unknown> | null {
    if (!this.#requests.isOverdrawn) return null;
    const before = this.#turnsOver;
    this.#turnsOver = Promise.all([before, over()]);
    return before;
  }

  checkTtl(key: string, ttlMs: number): void {
    const { ttlMsMax } = this.#limits;
    if (ttlMs <= ttlMsMax) return;
    throw new Problem(
      'forbidden',
      `${this.#id} may hold a lock for at most ${ttlMsMax} ms, not for ${ttlMs} ms.`,
      { key },
    );
  }

  async undertake(what: Undertaking, tokensOf: TokensOf): Promise<() => void> {
    const { key, waitMs, hold } = what;
    if (hold !== undefined && this.#holdings.has(key, hold)) return () => undefined;
    let excess = this.#excess(what);
    if (excess) {
      this.#holdings.forgetEnded();
      excess = this.#excess(what);
    }
    // This loop ends, because each round forgets at least one lock.
    for (let rounds = this.#holdings.size; excess && excess.of !== 'waiters' && rounds > 0; rounds -= 1) {
      const isFound = await this.#holdings.recount(tokensOf, excess.of === 'key' ? key : null);
      excess = this.#excess(what);
      if (!isFound) break;
    }
    if (excess) {
      throw new Problem('rate-limited', `${this.#id} ${excess.text} already, which is the limit.`, { key });
    }
    return this.#holdings.ask(key, waitMs > 0);
  }

  holds(key: string, hold: string, ttlMs: number, token?: number): void {
    this.#holdings.keep(key, hold, ttlMs, token);
  }

  #excess({ key, waitMs, shared = false }: Undertaking): Excess | null {
    const { held, heldOfKey, waiters } = this.#limits;
    const { size, waiting } = this.#holdings;
    // An exclusive claim cannot add a second holder.
    if (shared && this.#holdings.ofKey(key) >= heldOfKey) {
      return { of: 'key', text: `holds, or asks for, ${heldOfKey} shares of this lock` };
    }
    if (waitMs > 0 && waiting >= waiters) return { of: 'waiters', text: `waits ${waiters} times` };
    return size >= held ? { of: 'locks', text: `holds, or asks for, ${held} locks` } : null;
  }
}

/** The limit that is exceeded. */
interface Excess {
  readonly of: 'locks' | 'key' | 'waiters';
  readonly text: string;
}

const REMEMBERED_MAX = 10_000;

/** Allowances of all principals. */
export class Allowances {
  readonly #limits: PrincipalLimits;
  readonly #all = new Map<string, Allowance>();

  constructor(limits: PrincipalLimits) {
    this.#limits = limits;
  }

  of(id: string): Allowance {
    const known = this.#all.get(id);
    if (known) return known;
    if (this.#all.size >= REMEMBERED_MAX && this.#all.size % 1_000 === 0) this.#forgetIdle();
    const fresh = new Allowance(id, this.#limits);
    this.#all.set(id, fresh);
    return fresh;
  }

  #forgetIdle(): void {
    for (const [id, allowance] of this.#all) if (allowance.isIdle) this.#all.delete(id);
  }
}
