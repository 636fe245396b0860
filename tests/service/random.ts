/** The same choices for the same seed. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  chance(share: number): boolean {
    return this.#next() < share;
  }

  whole(below: number): number {
    return Math.floor(this.#next() * below);
  }

  pick<T>(items: readonly T[]): T {
    return items[this.whole(items.length)] as T;
  }

  #next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }
}
