/**
 * How many hold locks and how many wait: counted in the store when somebody asks, every 10 s at most. On a store that
 * charges for reads they are not counted, and these gauges do not exist: a 0 would be taken for a number.
 */
import { Gauge, Histogram, type Registry } from 'prom-client';
import type { ServiceParts } from '../http/service-parts.js';

/** Counting more keys than this would cost more than it tells. */
const KEYS_MAX = 10_000;
const AGES = [0.1, 1, 5, 15, 30, 60, 300, 900, 3_600, 21_600, 86_400];

export class Census {
  readonly #parts: ServiceParts;
  readonly #countMs: number;
  readonly #monotonicMs: () => number;
  readonly #held: Gauge;
  readonly #waiting: Gauge;
  readonly #ages: Histogram;
  #takenMs = Number.NEGATIVE_INFINITY;
  #taking: Promise<void> | null = null;

  /** A count is kept for `countMs`: scrapers come every few seconds, and there may be several. */
  constructor(registry: Registry, parts: ServiceParts, countMs: number, monotonicMs: () => number) {
    this.#parts = parts;
    this.#countMs = countMs;
    this.#monotonicMs = monotonicMs;
    const gauge = (name: string, help: string): Gauge =>
      new Gauge({ name: `holdfast_${name}`, help, registers: [registry] });
    this.#held = gauge('held', `Holders in the store, of the first ${KEYS_MAX} keys.`);
    this.#waiting = gauge('waiting', "Waiters in the store's lines, of the same keys.");
    this.#ages = new Histogram({
      name: 'holdfast_hold_age_seconds',
      help: 'How long the holders of now have held.',
      buckets: AGES,
      registers: [registry],
    });
  }

  /** A store that does not answer leaves the last numbers: its failures are counted elsewhere. */
  async take(): Promise<void> {
    if (this.#monotonicMs() - this.#takenMs < this.#countMs) return;
    this.#taking ??= this.#count().then(
      () => this.#done(),
      (error: unknown) => {
        this.#done();
        this.#parts.log.warn({ err: error }, 'the locks could not be counted');
      },
    );
    await this.#taking;
  }

  #done(): void {
    this.#takenMs = this.#monotonicMs();
    this.#taking = null;
  }

  async #count(): Promise<void> {
    const agesMs: number[] = [];
    let keys = 0;
    let waiting = 0;
    await this.#parts.desk.each({ prefix: '', limit: KEYS_MAX }, ({ holders, waiters, now }) => {
      for (const { acquiredAt } of holders) agesMs.push(now - acquiredAt);
      waiting += waiters.length;
      keys += 1;
      return keys < KEYS_MAX;
    });
    this.#held.set(agesMs.length);
    this.#waiting.set(waiting);
    this.#ages.reset();
    for (const ageMs of agesMs) this.#ages.observe(Math.max(0, ageMs) / 1_000);
  }
}
