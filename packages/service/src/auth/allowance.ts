/**
 * What one principal may use up in this process: requests, connections, locks held, requests that wait, and how long a
 * lock may be held without renewal. Locks are counted as they are granted and given back here; what ends elsewhere
 * counts until the time it was last renewed for is over.
 */
import type { Socket } from 'node:net';
import { InvalidArgumentError } from 'holdfast';
import { monotonicMs } from '../clock.js';
import type { Undertaking } from '../http/principal.js';
import { Problem } from '../http/problem.js';
import { Bucket, retryAfter } from './bucket.js';

export interface PrincipalLimits {
  readonly requestsPerSecond: number;
  /** So many at once, before the rate counts. */
  readonly requestBurst: number;
  readonly connections: number;
  /** Locks held, and acquires that may still be granted. */
  readonly held: number;
  readonly waiters: number;
  readonly ttlMsMax: number;
}

const PRINCIPAL_LIMITS: PrincipalLimits = {
  requestsPerSecond: 1_000,
  requestBurst: 2_000,
  connections: 2_000,
  held: 10_000,
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
  /** Until when each lock is held, by the monotonic clock. */
  readonly #held = new Map<string, number>();
  #asking = 0;
  #waiting = 0;

  constructor(id: string, limits: PrincipalLimits) {
    this.#id = id;
    this.#limits = limits;
    this.#requests = new Bucket(limits.requestsPerSecond, limits.requestBurst);
  }

  /** Nothing would be lost by forgetting it. */
  get isIdle(): boolean {
    this.#forgetEnded();
    return this.#sockets.size + this.#held.size + this.#asking === 0 && this.#requests.isFull;
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
    if (this.#sockets.has(socket)) return;
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
    socket.once('close', () => this.#sockets.delete(socket));
  }

  undertake({ key, ttlMs, waitMs, hold, renews }: Undertaking): () => void {
    const { held, waiters, ttlMsMax } = this.#limits;
    if (ttlMs > ttlMsMax) {
      throw new Problem(
        'forbidden',
        `${this.#id} may hold a lock for ${ttlMsMax} ms at a time, not for ${ttlMs} ms.`,
        {
          key,
        },
      );
    }
    if (renews || (hold !== undefined && this.#held.has(nameOf(key, hold)))) return () => undefined;
    if (this.#held.size + this.#asking >= held) this.#forgetEnded();
    if (this.#held.size + this.#asking >= held) throw this.#enough(key, `holds, or asks for, ${held} locks`);
    const waits = waitMs > 0 ? 1 : 0;
    if (this.#waiting + waits > waiters) throw this.#enough(key, `waits ${waiters} times`);
    this.#asking += 1;
    this.#waiting += waits;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#asking -= 1;
      this.#waiting -= waits;
    };
  }

  /** Held for so long from now; 0: no longer. */
  holds(key: string, hold: string, ttlMs: number): void {
    const name = nameOf(key, hold);
    if (ttlMs > 0) this.#held.set(name, monotonicMs() + ttlMs);
    else this.#held.delete(name);
  }

  #forgetEnded(): void {
    const nowMs = monotonicMs();
    for (const [name, untilMs] of this.#held) if (untilMs <= nowMs) this.#held.delete(name);
  }

  #enough(key: string, what: string): Problem {
    return new Problem('rate-limited', `${this.#id} ${what} already: that is the most.`, {
      key,
      headers: retryAfter(1_000),
    });
  }
}

function nameOf(key: string, hold: string): string {
  return `${key}\n${hold}`;
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
