/** Random numbers from a seed: the same seed gives the same run. Not for secrets. */
import { seededRandom } from './library.js';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

export class RandomSource {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = seededRandom(seed).next;
  }

  /** From 0 up to, not including, 1. */
  next(): number {
    return this.#next();
  }

  chance(share: number): boolean {
    return this.#next() < share;
  }

  between(low: number, high: number): number {
    return low + (high - low) * this.#next();
  }

  /** Spread evenly over orders of magnitude: as many draws between 10 and 100 as between 100 and 1,000. */
  scaled([low, high]: readonly [number, number]): number {
    if (low <= 0) return this.between(low, high);
    return low * (high / low) ** this.#next();
  }

  /** The time to the next event of a Poisson process with this mean interval. */
  gap(mean: number): number {
    return -Math.log(1 - this.#next()) * mean;
  }

  pick<T>(list: readonly [T, ...T[]]): T {
    return list[Math.floor(this.#next() * list.length)] ?? list[0];
  }

  /** An independent source: more draws in one part of a simulation change nothing in the others. */
  fork(): RandomSource {
    return new RandomSource(Math.floor(this.#next() * 2 ** 52));
  }

  id(): string {
    let id = '';
    for (let place = 0; place < 22; place++) id += ALPHABET[Math.floor(this.#next() * 64)];
    return id;
  }
}
