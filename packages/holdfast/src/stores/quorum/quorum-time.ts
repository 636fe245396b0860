/**
 * The time of a quorum: an estimate of every member's clock. Of the clocks known, `latest` is the lowest bound that a
 * majority stays below, `earliest` the highest that a majority has passed; with all members known both are medians.
 *
 * Two majorities have a member in common. An expiry of `latest` + ttl is at least its time plus ttl, and `earliest` has
 * passed the expiry only after its clock has. So that one clock counted the whole ttl, however far the clocks are apart,
 * and a clock that is wrong alone does not decide. A clock that is set forward makes its server forget records, though.
 */
import type { Clock } from '../../clock.js';
import type { Reading, StoreTime } from '../compare-and-swap/register.js';
import { TimeEstimate } from '../compare-and-swap/time-estimate.js';

/** Null where a time is not known. */
export interface QuorumReading {
  readonly members: readonly (Reading | null)[];
  readonly quorum: Reading | null;
}

export class QuorumTime implements StoreTime {
  readonly #estimates: readonly TimeEstimate[];
  readonly #majority: number;
  readonly #sample: () => Promise<void>;

  constructor(members: number, clock: Clock, sample: () => Promise<void>) {
    this.#estimates = Array.from({ length: members }, () => new TimeEstimate(undefined, clock));
    this.#majority = Math.floor(members / 2) + 1;
    this.#sample = sample;
  }

  /** A reply of this member, sent and received at these moments of the monotonic clock, gave its time. */
  note(member: number, sentMs: number, receivedMs: number, time: number): void {
    this.#estimates[member]?.note(sentMs, receivedMs, time, time);
  }

  now(): QuorumReading {
    const members = this.#estimates.map((estimate) => estimate.reading());
    const known = members.filter((reading) => reading !== null);
    const latest = known.map((reading) => reading.latest).sort((a, b) => a - b)[this.#majority - 1];
    const earliest = known.map((reading) => reading.earliest).sort((a, b) => b - a)[this.#majority - 1];
    const isKnown = latest !== undefined && earliest !== undefined;
    return { members, quorum: isKnown ? { earliest, latest } : null };
  }

  reading(): Reading | null {
    return this.now().quorum;
  }

  isFresh(): boolean {
    return this.#estimates.filter((estimate) => estimate.isFresh()).length >= this.#majority;
  }

  get jumps(): number {
    return this.#estimates.reduce((sum, { jumps }) => sum + jumps, 0);
  }

  sample(): Promise<void> {
    return this.#sample();
  }
}
