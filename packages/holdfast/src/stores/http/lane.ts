/**
 * Requests of one kind, a few at a time: what is said while they are on their way goes together in the next one. One
 * that is not answered soon counts no more, so that a service that hangs holds up nobody: whoever waits is asked for
 * again by the core, and that brings the next request on its way.
 */
import { systemClock } from '../../clock.js';
import { ATTEMPT_MS } from '../../protocol/index.js';

/** A service takes no more in one request. */
const COMMANDS_MAX = 512;
/** Half of what it takes: proxies have limits of their own. */
const BYTES_MAX = 512 * 1_024;

const ALOFT_MAX = 4;

export interface Batch<S> {
  readonly slots: S[];
  bytes: number;
}

/** Whether there is room for so much more. */
export function fits<S>(batch: Batch<S>, { slots, bytes }: Batch<S>): boolean {
  return batch.slots.length + slots.length <= COMMANDS_MAX && batch.bytes + bytes <= BYTES_MAX;
}

export class Lane<S> {
  readonly #send: (slots: readonly S[]) => Promise<void>;
  #waiting: Batch<S>[] = [];
  readonly #aloft = new Set<{ readonly sinceMs: number }>();

  /** `send` never rejects. */
  constructor(send: (slots: readonly S[]) => Promise<void>) {
    this.#send = send;
  }

  add(batch: Batch<S>): void {
    this.#waiting.push(batch);
    this.#flush();
  }

  #flush(): void {
    while (this.#waiting.length > 0 && this.#countAloft() < ALOFT_MAX) void this.#launch(this.#next());
  }

  #countAloft(): number {
    const fromMs = systemClock.monotonicMs() - ATTEMPT_MS;
    let count = 0;
    for (const { sinceMs } of this.#aloft) if (sinceMs > fromMs) count += 1;
    return count;
  }

  /** As many as fit, in order. */
  #next(): readonly S[] {
    const all: Batch<S> = { slots: [], bytes: 0 };
    let count = 0;
    for (const batch of this.#waiting) {
      if (count > 0 && !fits(all, batch)) break;
      all.slots.push(...batch.slots);
      all.bytes += batch.bytes;
      count += 1;
    }
    this.#waiting = this.#waiting.slice(count);
    return all.slots;
  }

  async #launch(slots: readonly S[]): Promise<void> {
    const flight = { sinceMs: systemClock.monotonicMs() };
    this.#aloft.add(flight);
    await this.#send(slots);
    this.#aloft.delete(flight);
    this.#flush();
  }
}
