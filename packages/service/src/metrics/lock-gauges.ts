/**
 * Gauges of holders and waiters: counted in the store when metrics are requested, at most every 10 s. On a store that
 * charges for reads they do not exist, because a 0 would look like a count.
 */
import { Gauge, Histogram, type Registry } from 'prom-client';
import { monotonicMs } from '../clock.js';
import type { ServiceParts } from '../http/service-parts.js';

/** Counting more keys costs too much. */
const KEYS_MAX = 10_000;
const AGES = [0.1, 1, 5, 15, 30, 60, 300, 900, 3_600, 21_600, 86_400];

export class LockGauges {
  readonly #parts: ServiceParts;
  readonly #countMs: number;
  readonly #held: Gauge;
  readonly #waiting: Gauge;
  readonly #ages: Histogram;
  #countedMs = Number.NEGATIVE_INFINITY;
  #counting: Promise<void> | null = null;

  /** A count is used for `countMs`: several scrapers may come every few seconds. */
  constructor(registry: Registry, parts: ServiceParts, countMs: number) {
    this.#parts = parts;
    this.#countMs = countMs;
    const gauge = (name: string, help: string): Gauge =>
      new Gauge({ name: `holdfast_${name}`, help, registers: [registry] });
    this.#held = gauge('held', `Holders in the store, of the first ${KEYS_MAX} keys.`);
    this.#waiting = gauge('waiting', "Waiters in the store's queues, of the same keys.");
    this.#ages = new Histogram({
      name: 'holdfast_hold_age_seconds',
      help: 'How long the current holders have held their locks.',
      buckets: AGES,
      registers: [registry],
    });
  }

  /** Keeps the last numbers when the store does not answer, because its failures have their own metric. */
  async update(): Promise<void> {
    if (monotonicMs() - this.#countedMs < this.#countMs) return;
    this.#counting ??= this.#count().then(
      () => this.#done(),
      (error: unknown) => {
        this.#done();
        this.#parts.log.warn({ err: error }, 'could not count the locks');
      },
    );
    await this.#counting;
  }

  #done(): void {
    this.#countedMs = monotonicMs();
    this.#counting = null;
  }

  async #count(): Promise<void> {
    const agesMs: number[] = [];
    let keys = 0;
    let waiting = 0;
    await this.#parts.client.eachReadable({ prefix: '', limit: KEYS_MAX }, ({ holders, waiters, now }) => {
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
