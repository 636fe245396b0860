/**
 * Counts the locks and acquire requests of one principal: in all, per key, and waiting ones. Requests end in this process, but a
 * lock may end through another one, so the count is an upper bound: the store is read (`recount`) before a request is
 * refused.
 */
import { monotonicMs } from '../clock.js';
import type { TokensOf } from '../http/principal.js';

interface Holding {
  readonly key: string;
  readonly untilMs: number;
  readonly waits: boolean;
  /** Token of the grant; undefined for a request, and when only a renewal or a cool-down was seen. */
  readonly token: number | undefined;
}

type Entry = readonly [name: string, holding: Holding];

/** A request ends with its response, not by time. */
const UNDER_WAY = Number.POSITIVE_INFINITY;
/** At most this often: recounting is slow, and a principal at its limit triggers it with every request. */
const LOOK_MS = 50;
/** Keys read at the same time. */
const READS = 16;
/** Ended locks are forgotten whenever there are twice as many as after the last time, and at least this many. */
const SWEPT_MIN = 1_000;

export class Holdings {
  readonly #all = new Map<string, Holding>();
  readonly #ofKey = new Map<string, number>();
  #waiting = 0;
  #asked = 0;
  #lookedMs = Number.NEGATIVE_INFINITY;
  /** With more locks than this, ended ones are forgotten: those that nobody releases would stay, up to the limit. */
  #sweptAbove = SWEPT_MIN;
  #recounting: Promise<boolean> | null = null;

  get size(): number {
    return this.#all.size;
  }

  get waiting(): number {
    return this.#waiting;
  }

  ofKey(key: string): number {
    return this.#ofKey.get(key) ?? 0;
  }

  has(key: string, hold: string): boolean {
    return this.#all.has(nameOf(key, hold));
  }

  /** Counts a request until the returned function is called. */
  ask(key: string, waits: boolean): () => void {
    this.#asked += 1;
    // A plain number is never the text of a hold.
    const name = nameOf(key, String(this.#asked));
    this.#set(name, { key, untilMs: UNDER_WAY, waits, token: undefined });
    return () => this.#end(name);
  }

  /** Held for this long from now; 0: no longer. */
  keep(key: string, hold: string, forMs: number, token?: number): void {
    const name = nameOf(key, hold);
    const known = this.#all.get(name)?.token;
    this.#end(name);
    if (forMs <= 0) return;
    this.#set(name, { key, untilMs: monotonicMs() + forMs, waits: false, token: token ?? known });
  }

  forgetEnded(): void {
    const nowMs = monotonicMs();
    if (nowMs - this.#lookedMs < LOOK_MS) return;
    this.#lookedMs = nowMs;
    this.#sweep(nowMs);
  }

  /**
   * Forgets locks that the store no longer has: of one key, or of all keys until one was found. Those checked longest ago come
   * first. Only one recount of all keys runs at a time. True when a lock was forgotten: others may have taken the room
   * already, so the caller recounts again.
   */
  async recount(tokensOf: TokensOf, key: string | null): Promise<boolean> {
    if (key !== null) return (await this.#check(this.#held(Number.POSITIVE_INFINITY, key), tokensOf)) > 0;
    // The running recount may have missed locks that ended since its start.
    if (await this.#recounting) return true;
    this.#recounting ??= this.#checkAll(tokensOf).finally(() => {
      this.#recounting = null;
    });
    return this.#recounting;
  }

  async #checkAll(tokensOf: TokensOf): Promise<boolean> {
    for (let left = this.size; left > 0; left -= READS) {
      if ((await this.#check(this.#held(READS), tokensOf)) > 0) return true;
    }
    return false;
  }

  /** Locks held, of one key or of all. */
  #held(most: number, key?: string): readonly Entry[] {
    const some: Entry[] = [];
    for (const entry of this.#all) {
      const [, holding] = entry;
      const isMeant = holding.untilMs !== UNDER_WAY && (key === undefined || holding.key === key);
      if (isMeant) some.push(entry);
      if (some.length >= most) break;
    }
    return some;
  }

  /** How many were forgotten. */
  async #check(some: readonly Entry[], tokensOf: TokensOf): Promise<number> {
    let forgotten = 0;
    const keys = [...new Set(some.map(([, { key }]) => key))];
    const found = new Map(await Promise.all(keys.map(async (key) => [key, await tokensOf(key)] as const)));
    for (const [name, holding] of some) {
      // It was renewed meanwhile.
      if (this.#all.get(name) !== holding) continue;
      const tokens = found.get(holding.key) ?? [];
      const isThere = holding.token === undefined ? tokens.length > 0 : tokens.includes(holding.token);
      if (!isThere) {
        this.#end(name);
        forgotten += 1;
        continue;
      }
      this.#all.delete(name);
      this.#all.set(name, holding);
    }
    return forgotten;
  }

  #sweep(nowMs: number): void {
    for (const [name, { untilMs }] of this.#all) if (untilMs <= nowMs) this.#end(name);
    this.#sweptAbove = Math.max(SWEPT_MIN, 2 * this.#all.size);
  }

  #set(name: string, holding: Holding): void {
    const { key, waits } = holding;
    if (this.#all.size >= this.#sweptAbove) this.#sweep(monotonicMs());
    this.#all.set(name, holding);
    this.#ofKey.set(key, this.ofKey(key) + 1);
    if (waits) this.#waiting += 1;
  }

  #end(name: string): void {
    const holding = this.#all.get(name);
    if (!holding) return;
    const { key, waits } = holding;
    this.#all.delete(name);
    const left = this.ofKey(key) - 1;
    if (left > 0) this.#ofKey.set(key, left);
    else this.#ofKey.delete(key);
    if (waits) this.#waiting -= 1;
  }
}

function nameOf(key: string, hold: string): string {
  return `${key}\n${hold}`;
}
