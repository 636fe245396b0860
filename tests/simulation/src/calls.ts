/**
 * Calls that have not settled yet. Each must settle within its bound: a waiting call soon after its wait is over,
 * any other within `ANSWERS_MS`.
 */
import type { Client } from './client.js';
import { storeKeyOf } from './profile.js';
import type { RunResult } from './run-result.js';
import type { Schedule } from './schedule.js';

/** How much longer than its wait a call may take: the last answer, and a withdrawal in flight. */
export const SETTLES_MS = 3_000;
/** A release, renewal or eviction is answered, or given up, within this time. */
export const ANSWERS_MS = 10_000;

export interface Wants {
  readonly permits: number;
  readonly capacity: number;
}

/** The permits of all of these, and the capacity in force: the smallest. */
export function sumOf(takers: readonly Wants[]): Wants {
  let permits = 0;
  let capacity = Number.MAX_SAFE_INTEGER;
  for (const taker of takers) {
    permits += taker.permits;
    capacity = Math.min(capacity, taker.capacity);
  }
  return { permits, capacity };
}

export interface Call {
  readonly client: Client;
  readonly key: string;
  readonly what: 'acquire' | 'group' | 'release' | 'renew' | 'handoff' | 'adopt' | 'evict' | 'close';
  readonly wants: Wants;
  readonly sinceMs: number;
  readonly pausedMs: number;
  /** How long it may take, not counting pauses of its process. */
  readonly boundMs: number;
}

export class Calls {
  readonly #open = new Set<Call>();
  readonly #schedule: Schedule;
  readonly #result: RunResult;

  constructor(schedule: Schedule, result: RunResult) {
    this.#schedule = schedule;
    this.#result = result;
  }

  get open(): ReadonlySet<Call> {
    return this.#open;
  }

  /** `name`: the key without its namespace. */
  begin(client: Client, name: string, what: Call['what'], wants: Wants, boundMs = ANSWERS_MS): Call {
    const { pausedMs } = client.process;
    const sinceMs = this.#schedule.nowMs;
    const call = { client, key: storeKeyOf(name), what, wants, sinceMs, pausedMs, boundMs };
    this.#open.add(call);
    return call;
  }

  /** Returns how long the call took, not counting pauses of its process. */
  end(call: Call): number {
    this.#open.delete(call);
    return this.#tookMs(call);
  }

  endOf(client: Client): void {
    for (const call of this.#open) if (call.client === client) this.#open.delete(call);
  }

  check(): void {
    for (const call of this.#open) {
      if (this.#tookMs(call) <= call.boundMs) continue;
      this.#open.delete(call);
      const text = `${call.key}: ${call.what} of ${call.client.process.name} has not settled after ${call.boundMs} ms`;
      this.#result.violate('hangs', this.#schedule.nowMs, text);
    }
  }

  #tookMs({ client, sinceMs, pausedMs }: Call): number {
    return this.#schedule.nowMs - sinceMs - (client.process.pausedMs - pausedMs);
  }
}
