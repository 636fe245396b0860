/**
 * Counts the locks and acquire requests of one principal: in all, per key, and waiting. Requests end in this process, but
 * a lock may end through another process, so the count is an upper bound: the store is read (`recount`) before a request
 * is refused.
 */
import { monotonicMs } from '../clock.js';
import type { TokensOf } from '../http/principal.js';

interface Holding {
  readonly key: string;
  readonly untilMs: number;
  /** Token of the grant; undefined when only a renewal or a cool-down was seen. */
  readonly token: number | undefined;
}

type Entry = readonly [name: string, holding: Holding];

/** The least time between two recounts: they are slow, and a principal at its limit triggers one with every request. */
const LOOK_MS = 50;
/** How many keys are read at the same time. */
const READS = 16;
/** Ended locks are forgotten whenever there are twice as many as after the last time, and at least this many. */
const SWEPT_MIN = 1_000;

export class Holdings {
  readonly #held = new Map<string, Holding>();
  /** Locks and requests. */
  readonly #ofKey = new Map<string, number>();
  #requests = 0;
  #waiting = 0;
  #lookedMs = Number.NEGATIVE_INFINITY;
  /** Above this number, ended locks are forgotten: locks that nobody releases would stay, up to the limit. */
  #sweptAbove = SWEPT_MIN;
  #recounting: Promise<boolean> | null = null;

  get size(): number {
    return this.#held.size + this.#requests;
  }

  get waiting(): number {
    return this.#waiting;
  }

  ofKey(key: string): number {
    return this.#ofKey.get(key) ?? 0;
  }

  has(key: string, hold: string): boolean {
    return this.#held.has(nameOf(key, hold));
  }

  /** Counts a request until the returned function is called, once. */
  ask(key: string, waits: boolean): () => void {
    const waiting = waits ? 1 : 0;
    this.#requests += 1;
    this.#waiting += waiting;
    this.#count(key, 1);
    return () => {
      this.#requests -= 1;
      this.#waiting -= waiting;
      this.#count(key, -1);
    };
  }

  /** The lock is held for this long from now; 0: no longer. */
  keep(key: string, hold: string, forMs: number, token?: number): void {
    const name = nameOf(key, hold);
    const known = this.#held.get(name)?.token;
    this.#end(name);
    if (forMs <= 0) return;
    if (this.#held.size >= this.#sweptAbove) this.#sweep(monotonicMs());
    this.#held.set(name, { key, untilMs: monotonicMs() + forMs, token: token ?? known });
    this.#count(key, 1);
  }

  forgetEnded(): void {
    const nowMs = monotonicMs();
    if (nowMs - this.#lookedMs < LOOK_MS) return;
    this.#lookedMs = nowMs;
    this.#sweep(nowMs);
  }

  /**
   * Forgets locks that the store no longer has: of one key, or of all keys until one was found. Locks whose last check is
   * the longest ago come first. Only one recount of all keys runs at a time. True when a lock was forgotten: others may
   * have taken the room already, so the caller recounts again.
   */
  async recount(tokensOf: TokensOf, key: string | null): Promise<boolean> {
    if (key !== null) return (await this.#check(this.#some(Number.POSITIVE_INFINITY, key), tokensOf)) > 0;
    // The running recount may have missed locks that ended since its start.
    if (await this.#recounting) return true;
    this.#recounting ??= this.#checkAll(tokensOf).finally(() => {
      this.#recounting = null;
    });
    return this.#recounting;
  }

  async #checkAll(tokensOf: TokensOf): Promise<boolean> {
    for (let left = this.#held.size; left > 0; left -= READS) {
      if ((await this.#check(this.#some(READS), tokensOf)) > 0) return true;
    }
    return false;
  }

  /** Locks held, of one key or of all. */
  #some(most: number, key?: string): readonly Entry[] {
    const some: Entry[] = [];
    for (const entry of this.#held) {
      const [, holding] = entry;
      if (key === undefined || holding.key === key) some.push(entry);
      if (some.length >= most) break;
    }
    return some;
  }

  /** Returns how many were forgotten. */
  async #check(some: readonly Entry[], tokensOf: TokensOf): Promise<number> {
    let forgotten = 0;
    const keys = [...new Set(some.map(([, { key }]) => key))];
    const found = new Map(await Promise.all(keys.map(async (key) => [key, await tokensOf(key)] as const)));
    for (const [name, holding] of some) {
      // The lock was renewed meanwhile.
      if (this.#held.get(name) !== holding) continue;
      const tokens = found.get(holding.key) ?? [];
      const isThere = holding.token === undefined ? tokens.length > 0 : tokens.includes(holding.token);
      if (!isThere) {
        this.#end(name);
        forgotten += 1;
        continue;
      }
      this.#held.delete(name);
      this.#held.set(name, holding);
    }
    return forgotten;
  }

  #sweep(nowMs: number): void {
    for (const [name, { untilMs }] of this.#held) if (untilMs <= nowMs) this.#end(name);
    this.#sweptAbove = Math.max(SWEPT_MIN, 2 * this.#held.size);
  }

  #end(name: string): void {
    const holding = this.#held.get(name);
    if (!holding) return;
    this.#held.delete(name);
    this.#count(holding.key, -1);
  }

  #count(key: string, by: number): void {
    const count = this.ofKey(key) + by;
    if (count > 0) this.#ofKey.set(key, count);
    else this.#ofKey.delete(key);
  }
}

function nameOf(key: string, hold: string): string {
  return `${key}\n${hold}`;
}
