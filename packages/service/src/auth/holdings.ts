/**
 * What one principal has: locks held, places in a store's line, and requests that may still become either. Counted in
 * all, by key, and as far as they wait. What ends elsewhere counts until the time it was last heard of for is over.
 */
import { monotonicMs } from '../clock.js';

interface Holding {
  readonly key: string;
  readonly untilMs: number;
  readonly waits: boolean;
}

/** To look through all of them takes time, and whoever has too many makes us look with every request. */
const LOOK_MS = 50;

export class Holdings {
  readonly #all = new Map<string, Holding>();
  readonly #ofKey = new Map<string, number>();
  #waiting = 0;
  #asked = 0;
  #lookedMs = Number.NEGATIVE_INFINITY;

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
    this.#set(name, { key, untilMs: Number.POSITIVE_INFINITY, waits });
    return () => this.#end(name);
  }

  /** There for so long from now; 0: no longer. */
  keep(key: string, hold: string, forMs: number, waits: boolean): void {
    const name = nameOf(key, hold);
    this.#end(name);
    if (forMs > 0) this.#set(name, { key, untilMs: monotonicMs() + forMs, waits });
  }

  forgetEnded(): void {
    const nowMs = monotonicMs();
    if (nowMs - this.#lookedMs < LOOK_MS) return;
    this.#lookedMs = nowMs;
    for (const [name, { untilMs }] of this.#all) if (untilMs <= nowMs) this.#end(name);
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
