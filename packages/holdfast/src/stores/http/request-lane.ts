/**
 * Requests of one kind, a few at a time. Commands that arrive while those are unanswered share the next request. A
 * request that is not answered soon no longer counts, so that a service that hangs blocks nobody: the core sends its
 * commands again, and that starts the next request.
 */
import { systemClock } from '../../clock.js';
import { ATTEMPT_MS } from '../../protocol/index.js';

/** The service accepts no more in one request. */
const COMMANDS_MAX = 512;
/** Half of what the service accepts: proxies have limits of their own. */
const BYTES_MAX = 512 * 1_024;
const REQUESTS_MAX = 4;

export interface Batch<C> {
  readonly commands: C[];
  bytes: number;
}

export function fits<C>(batch: Batch<C>, { commands, bytes }: Batch<C>): boolean {
  return batch.commands.length + commands.length <= COMMANDS_MAX && batch.bytes + bytes <= BYTES_MAX;
}

export class RequestLane<C> {
  readonly #send: (commands: readonly C[]) => Promise<void>;
  #waiting: Batch<C>[] = [];
  readonly #unanswered = new Set<{ readonly sentMs: number }>();

  /** `send` never rejects. */
  constructor(send: (commands: readonly C[]) => Promise<void>) {
    this.#send = send;
  }

  add(batch: Batch<C>): void {
    this.#waiting.push(batch);
    this.#flush();
  }

  #flush(): void {
    while (this.#waiting.length > 0 && this.#countUnanswered() < REQUESTS_MAX) void this.#start(this.#next());
  }

  #countUnanswered(): number {
    const fromMs = systemClock.monotonicMs() - ATTEMPT_MS;
    let count = 0;
    for (const { sentMs } of this.#unanswered) if (sentMs > fromMs) count += 1;
    return count;
  }

  /** As many as fit, in order. */
  #next(): readonly C[] {
    const all: Batch<C> = { commands: [], bytes: 0 };
    let count = 0;
    for (const batch of this.#waiting) {
      if (count > 0 && !fits(all, batch)) break;
      all.commands.push(...batch.commands);
      all.bytes += batch.bytes;
      count += 1;
    }
    this.#waiting = this.#waiting.slice(count);
    return all.commands;
  }

  async #start(commands: readonly C[]): Promise<void> {
    const request = { sentMs: systemClock.monotonicMs() };
    this.#unanswered.add(request);
    await this.#send(commands);
    this.#unanswered.delete(request);
    this.#flush();
  }
}
