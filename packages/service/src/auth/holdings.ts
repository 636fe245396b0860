/**
 * What one principal has: locks held, and requests that may still be granted one or that wait. Counted in all, by key,
 * and as far as they wait. Requests end here. A lock may end through another process, so that what is counted here is
 * what it has at most: before anything is refused because of it, the store is asked (`recount`).
 */
import { monotonicMs } from '../clock.js';
import type { TokensOf } from '../http/principal.js';

interface Holding {
  readonly key: string;
  readonly untilMs: number;
  readonly waits: boolean;
  /** Of the grant; undefined where only a renewal or a rest of it was seen, or for a request. */
  readonly token: number | undefined;
}

type Entry = readonly [name: string, holding: Holding];

/** A request ends when it is answered, not by time. */
const UNDER_WAY = Number.POSITIVE_INFINITY;
/** To look through all of them takes time, and whoever has too many makes us look with every request. */
const LOOK_MS = 50;
/** Keys that are read at the same time: fewer than one tenant could ask for by itself. */
const READS = 16;

export class Holdings {
  readonly #all = new Map<string, Holding>();
  readonly #ofKey = new Map<string, number>();
  #waiting = 0;
  #asked = 0;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #recounting: Promise<void> | null = null;

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

  /** A request that is under way until what is returned is called. */
  ask(key: string, waits: boolean): () => void {
    this.#asked += 1;
    // No hold's text is a mere number.
    const name = nameOf(key, String(this.#asked));
    this.#set(name, { key, untilMs: UNDER_WAY, waits, token: undefined });
    return () => this.#end(name);
  }

  /** Held for so long from now; 0: no longer. */
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
    for (const [name, { untilMs }] of this.#all) if (untilMs <= nowMs) this.#end(name);
  }

  /**
   * Forgets what the store no longer has: of one key, or of all until something was found. Those that were looked at the
   * longest ago come first. However many ask, there is one recount of all at a time.
   */
  async recount(tokensOf: TokensOf, key: string | null): Promise<void> {
    if (key !== null) {
      await this.#check(this.#held(Number.POSITIVE_INFINITY, key), tokensOf);
      return;
    }
    const before = this.size;
    // What ended since that one began it may have missed.
    await this.#recounting;
    if (this.size < before) return;
    this.#recounting ??= this.#checkAll(tokensOf).finally(() => {
      this.#recounting = null;
    });
    await this.#recounting;
  }

  async #checkAll(tokensOf: TokensOf): Promise<void> {
    const before = this.size;
    for (let left = before; left > 0 && this.size >= before; left -= READS) {
      await this.#check(this.#held(READS), tokensOf);
    }
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

  async #check(some: readonly Entry[], tokensOf: TokensOf): Promise<void> {
    const keys = [...new Set(some.map(([, { key }]) => key))];
    const found = new Map(await Promise.all(keys.map(async (key) => [key, await tokensOf(key)] as const)));
    for (const [name, holding] of some) {
      // One that was renewed meanwhile is there.
      if (this.#all.get(name) !== holding) continue;
      const tokens = found.get(holding.key) ?? [];
      const isThere = holding.token === undefined ? tokens.length > 0 : tokens.includes(holding.token);
      if (!isThere) {
        this.#end(name);
        continue;
      }
      this.#all.delete(name);
      this.#all.set(name, holding);
    }
  }

  #set(name: string, holding: Holding): void {
    const { key, waits } = holding;
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
