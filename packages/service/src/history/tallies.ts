/**
 * Counts and histograms per key, in twelve slots of time that together reach back as far as the history: the oldest slot is
 * dropped as a whole. A slot counts 1,000 keys by name, and the other keys together per namespace.
 */
import type { EndKind } from './past-holds.js';

export type Count = EndKind | 'acquired' | 'refused' | 'contended';

/** Upper bounds in milliseconds; the last bucket has none. */
export const WAIT_BUCKETS_MS: readonly number[] = [
  1, 10, 100, 500, 1_000, 5_000, 10_000, 30_000, 60_000, 300_000,
];
export const HOLD_BUCKETS_MS: readonly number[] = [
  10, 100, 1_000, 5_000, 30_000, 60_000, 300_000, 1_800_000, 3_600_000, 86_400_000,
];

export class Tally {
  readonly counts: Record<Count, number> = {
    ...{ acquired: 0, refused: 0, contended: 0 },
    ...{ unknown: 0, expired: 0, lost: 0, released: 0, evicted: 0 },
  };
  readonly waits = WAIT_BUCKETS_MS.map(() => 0).concat(0);
  readonly holds = HOLD_BUCKETS_MS.map(() => 0).concat(0);
  waitedMs = 0;
  longestWaitMs = 0;

  waited(ms: number): void {
    this.waitedMs += ms;
    this.longestWaitMs = Math.max(this.longestWaitMs, ms);
    increment(this.waits, WAIT_BUCKETS_MS, ms);
  }

  held(ms: number): void {
    increment(this.holds, HOLD_BUCKETS_MS, ms);
  }

  add(other: Tally): void {
    for (const name of COUNTS) this.counts[name] += other.counts[name];
    addEach(this.waits, other.waits);
    addEach(this.holds, other.holds);
    this.waitedMs += other.waitedMs;
    this.longestWaitMs = Math.max(this.longestWaitMs, other.longestWaitMs);
  }
}

const COUNTS = Object.keys(new Tally().counts) as readonly Count[];

function addEach(sums: number[], counts: readonly number[]): void {
  for (let index = 0; index < counts.length; index += 1) {
    sums[index] = (sums[index] ?? 0) + (counts[index] ?? 0);
  }
}

function increment(buckets: number[], bounds: readonly number[], value: number): void {
  let at = 0;
  while (value > (bounds[at] ?? Number.POSITIVE_INFINITY)) at += 1;
  buckets[at] = (buckets[at] ?? 0) + 1;
}

interface Slot {
  readonly number: number;
  readonly keys: Map<string, Tally>;
  /** Counts of the keys that are not counted by name. */
  readonly namespaces: Map<string, Tally>;
}

const SLOTS = 12;
const KEYS_MAX = 1_000;

export class Tallies {
  readonly #slotMs: number;
  readonly #slots: Slot[] = [];

  constructor(keptMs: number) {
    this.#slotMs = Math.max(1, keptMs / SLOTS);
  }

  of(key: string, nowMs: number): Tally {
    const { keys, namespaces } = this.#slotAt(nowMs);
    const known = keys.get(key);
    if (known) return known;
    if (keys.size < KEYS_MAX) return tallyIn(keys, key);
    const namespace = namespaceOf(key);
    // Counts of namespaces beyond the limit are dropped.
    return namespaces.has(namespace) || namespaces.size < KEYS_MAX
      ? tallyIn(namespaces, namespace)
      : new Tally();
  }

  /** Sums of the keys in the namespaces that are wanted. */
  summary(nowMs: number, isWanted: (namespace: string) => boolean): Summary {
    const total = new Tally();
    const byKey = new Map<string, Tally>();
    // Most keys are in one slot. A copy of each would hold up all other requests: there may be 12,000.
    const copies = new Set<Tally>();
    let isPartial = false;
    this.#slotAt(nowMs);
    for (const { keys, namespaces } of this.#slots) {
      for (const [key, tally] of keys) {
        if (!isWanted(namespaceOf(key))) continue;
        const before = byKey.get(key);
        const sum = before === undefined ? tally : copies.has(before) ? before : copyOf(before);
        if (sum !== tally) {
          sum.add(tally);
          copies.add(sum);
        }
        byKey.set(key, sum);
        total.add(tally);
      }
      for (const [namespace, tally] of namespaces) {
        if (!isWanted(namespace)) continue;
        isPartial = true;
        total.add(tally);
      }
    }
    return { total, byKey, isPartial };
  }

  #slotAt(nowMs: number): Slot {
    const number = Math.floor(nowMs / this.#slotMs);
    const last = this.#slots.at(-1);
    if (last?.number === number) return last;
    const slot = { number, keys: new Map<string, Tally>(), namespaces: new Map<string, Tally>() };
    this.#slots.push(slot);
    while ((this.#slots[0]?.number ?? number) <= number - SLOTS) this.#slots.shift();
    return slot;
  }
}

export interface Summary {
  readonly total: Tally;
  readonly byKey: ReadonlyMap<string, Tally>;
  /** Whether some keys were not counted by name. */
  readonly isPartial: boolean;
}

function copyOf(tally: Tally): Tally {
  const copy = new Tally();
  copy.add(tally);
  return copy;
}

function tallyIn(tallies: Map<string, Tally>, name: string): Tally {
  const tally = tallies.get(name) ?? new Tally();
  tallies.set(name, tally);
  return tally;
}

function namespaceOf(key: string): string {
  return key.slice(0, Math.max(key.indexOf('/'), 0));
}
