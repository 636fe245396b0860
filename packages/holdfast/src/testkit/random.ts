/** Random numbers from a seed. Not for secrets. */

export interface Random {
  /** From 0 up to, not including, 1. */
  next(): number;
  /** An integer from low to high, both included. */
  between(low: number, high: number): number;
  /** True with this probability. */
  chance(probability: number): boolean;
  pick<T>(from: readonly T[]): T;
  /** One of the names, with a probability in proportion to its weight. */
  weighted<N extends string>(weights: Readonly<Record<N, number>>): N;
}

/** mulberry32 over a scrambled seed, so that neighbouring seeds give unrelated numbers. */
export function seededRandom(seed: number): Random {
  let state = Math.imul((seed ^ 0x9e3779b9) >>> 0, 0x85ebca6b) ^ Math.floor(seed / 2 ** 32);
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1));
  return {
    next,
    between,
    chance: (probability) => next() < probability,
    pick(from) {
      const chosen = from[between(0, from.length - 1)];
      if (chosen === undefined) throw new RangeError('There is nothing to pick from.');
      return chosen;
    },
    weighted<N extends string>(weights: Readonly<Record<N, number>>): N {
      const entries = Object.entries<number>(weights) as [N, number][];
      let left = next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
      for (const [name, weight] of entries) {
        left -= weight;
        if (left < 0) return name;
      }
      throw new RangeError('No name has a weight.');
    },
  };
}
