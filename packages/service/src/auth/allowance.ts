/**
 * What one principal may use up in this process: requests, connections, locks held, holds of one lock, requests that
 * wait, and how long a lock may be held without renewal. Locks are counted as they are granted and given back here.
 */
import type { Socket } from 'node:net';
import { InvalidArgumentError } from 'holdfast';
import { Bucket, retryAfter } from '../http/bucket.js';
import type { Undertaking } from '../http/principal.js';
import { Problem } from '../http/problem.js';
import { Holdings } from './holdings.js';

export interface PrincipalLimits {
  readonly requestsPerSecond: number;
  /** So many at once, before the rate counts. */
  readonly requestBurst: number;
  readonly connections: number;
  /** Locks held, and acquires that may still be granted. */
  readonly held: number;
  /** The same, of one semaphore or read-write lock: its record is written anew with every one of them. */
  readonly heldOfKey: number;
  /** Requests that wait, and places in a store's line. */
  readonly waiters: number;
  readonly ttlMsMax: number;
}

const PRINCIPAL_LIMITS: PrincipalLimits = {
  requestsPerSecond: 1_000,
  requestBurst: 2_000,
  connections: 2_000,
  held: 10_000,
  heldOfKey: 1_000,
  waiters: 2_000,
  ttlMsMax: 7 * 24 * 3_600_000,
};

export function principalLimitsOf(given: Partial<PrincipalLimits>): PrincipalLimits {
  for (const [name, value] of Object.entries(given)) {
    if (!(name in PRINCIPAL_LIMITS)) {
      throw new InvalidArgumentError(
        `There is no limit "${name}" for a principal. There are: ${Object.keys(PRINCIPAL_LIMITS).join(', ')}.`,
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
  readonly #sockets = new Set<Socket>();
  readonly #holdings = new Holdings();

  constructor(id: string, limits: PrincipalLimits) {
    this.#id = id;
    this.#limits = limits;
    this.#requests = new Bucket(limits.requestsPerSecond, limits.requestBurst);
  }

  get ttlMsMax(): number {
    return this.#limits.ttlMsMax;
  }

  /** Nothing would be lost by forgetting it. */
  get isIdle(): boolean {
    this.#holdings.forgetEnded();
    return this.#sockets.size + this.#holdings.size === 0 && this.#requests.isFull;
  }

  /** Another request has come. */
  request(socket: Socket): void {
    if (!this.#requests.take()) {
      throw new Problem(
        'rate-limited',
        `${this.#id} asks more often than ${this.#limits.requestsPerSecond} times a second.`,
        {
          headers: retryAfter(this.#requests.waitMs),
        },
      );
    }
    // One that closed while its token was looked at would count for good: nothing tells of that any more.
    if (socket.destroyed || this.#sockets.has(socket)) return;
    if (this.#sockets.size >= this.#limits.connections) {
      throw new Problem(
        'rate-limited',
        `${this.#id} has ${this.#sockets.size} connections open: use those.`,
        {
          headers: { ...retryAfter(1_000), connection: 'close' },
        },
      );
    }
    this.#sockets.add(socket);
    // A proxy's connection carries many principals, and each listens: Node takes more than ten for a mistake.
    socket.setMaxListeners(0);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  /** The last request was as much work as so many more: those that come next wait for it. */
  spend(requests: number): void {
    this.#requests.spend(requests);
  }

  undertake(what: Undertaking): () => void {
    const { key, ttlMs, waitMs, hold, renews } = what;
    const { ttlMsMax } = this.#limits;
    if (ttlMs > ttlMsMax) {
      throw new Problem(
        'forbidden',
        `${this.#id} may hold a lock for ${ttlMsMax} ms at a time, not for ${ttlMs} ms.`,
        {
          key,
        },
      );
    }
    if (renews || (hold !== undefined && this.#holdings.has(key, hold))) return () => undefined;
    if (this.#excess(what) !== null) this.#holdings.forgetEnded();
    const excess = this.#excess(what);
    if (excess !== null) {
      throw new Problem('rate-limited', `${this.#id} ${excess} already: that is the most.`, {
        key,
        headers: retryAfter(1_000),
      });
    }
    return this.#holdings.ask(key, waitMs > 0);
  }

  /** Held for so long from now; 0: no longer. */
  holds(key: string, hold: string, ttlMs: number): void {
    this.#holdings.keep(key, hold, ttlMs, false);
  }

  /** Has a place in the store's line for so long from now; 0: no longer. */
  queues(key: string, hold: string, forMs: number): void {
    this.#holdings.keep(key, hold, forMs, true);
  }

  /** What there would be too much of; null where there is room. */
  #excess({ key, waitMs, shared = false }: Undertaking): string | null {
    const { held, heldOfKey, waiters } = this.#limits;
    const { size, waiting } = this.#holdings;
    if (size >= held) return `holds, or asks for, ${held} locks`;
    // One who wants it alone adds nothing to a lock that somebody has.
    if (shared && this.#holdings.ofKey(key) >= heldOfKey) {
      return `holds, or asks for, ${heldOfKey} shares of this lock`;
    }
    return waitMs > 0 && waiting >= waiters ? `waits ${waiters} times` : null;
  }
}

const REMEMBERED_MAX = 10_000;

/** Everybody's. */
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
