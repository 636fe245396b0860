/**
 * Calls that wait for a lock, and leases not yet given back: who wants what at this moment. Every one of them has to
 * settle: a waiting call soon after its wait is over, a release before long.
 */
import type { Resident } from './resident.js';
import type { Schedule } from './schedule.js';
import type { Tally } from './tally.js';

/** How much longer than its wait a call may take: the last answer, and a withdrawal under way. */
export const SETTLES_MS = 3_000;
/** By then a release, a renewal or an eviction has its answer, or has given up. */
export const ANSWERS_MS = 10_000;

export interface Wants {
  readonly permits: number;
  readonly capacity: number;
}

export interface Call {
  readonly resident: Resident;
  readonly key: string;
  readonly what: 'acquire' | 'group' | 'release' | 'renew' | 'handoff' | 'adopt' | 'evict' | 'close';
  readonly wants: Wants;
  readonly sinceMs: number;
  readonly pausedMs: number;
  /** How long it may take while its process runs. */
  readonly boundMs: number;
}

export class Calls {
  readonly #open = new Set<Call>();
  readonly #schedule: Schedule;
  readonly #tally: Tally;

  constructor(schedule: Schedule, tally: Tally) {
    this.#schedule = schedule;
    this.#tally = tally;
  }

  get open(): ReadonlySet<Call> {
    return this.#open;
  }

  begin(call: Omit<Call, 'sinceMs' | 'pausedMs'>): Call {
    const { pausedMs } = call.resident.process;
    const begun = { ...call, sinceMs: this.#schedule.nowMs, pausedMs };
    this.#open.add(begun);
    return begun;
  }

  /** How long it took while its process ran. */
  end(call: Call): number {
    this.#open.delete(call);
    return this.#tookMs(call);
  }

  endOf(resident: Resident): void {
    for (const call of this.#open) if (call.resident === resident) this.#open.delete(call);
  }

  check(): void {
    for (const call of this.#open) {
      if (this.#tookMs(call) <= call.boundMs) continue;
      this.#open.delete(call);
      const text = `${call.key}: ${call.what} of ${call.resident.process.name} has not settled after ${call.boundMs} ms`;
      this.#tally.violate('hangs', this.#schedule.nowMs, text);
    }
  }

  #tookMs({ resident, sinceMs, pausedMs }: Call): number {
    return this.#schedule.nowMs - sinceMs - (resident.process.pausedMs - pausedMs);
  }
}
