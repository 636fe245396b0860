/**
 * The link between one process and the store: slow, and some messages are lost, late or doubled. Latency varies, so
 * messages also arrive out of order.
 */

import type { SimulatedProcess } from './process.js';
import type { RandomSource } from './random-source.js';
import type { FaultKind, RunResult } from './run-result.js';
import type { Schedule } from './schedule.js';

export interface NetworkConditions {
  readonly latencyMs: readonly [number, number];
  /** The share of messages and wake-ups that are lost, late or doubled, a third each. */
  readonly faultShare: number;
  /** The extra delay of late messages. */
  readonly lateMs: readonly [number, number];
}

export type MessageKind = 'request' | 'reply' | 'wake-up';

export type Delivery = 'carried' | 'lost';

interface Kinds {
  readonly lost: FaultKind;
  readonly late: FaultKind;
  readonly doubled: FaultKind;
}

const KINDS: { readonly [kind in MessageKind]: Kinds } = {
  request: { lost: 'request lost', late: 'message late', doubled: 'message doubled' },
  reply: { lost: 'reply lost', late: 'message late', doubled: 'message doubled' },
  'wake-up': { lost: 'wake-up lost', late: 'wake-up late', doubled: 'wake-up doubled' },
};

export class Link {
  readonly process: SimulatedProcess;
  readonly random: RandomSource;
  /** Per key: when the last fault happened on this link, and how many so far. */
  readonly faults = new Map<string, { atMs: number; count: number }>();
  isCut = false;
  faultFree = false;
  /** `listen` was called and has not succeeded: no wake-ups arrive. */
  cannotListen = false;
  /** Added to the latency of every message while the link is slow. */
  lagMs = 0;
  readonly #schedule: Schedule;
  readonly #conditions: NetworkConditions;
  readonly #result: RunResult;

  constructor(
    process: SimulatedProcess,
    schedule: Schedule,
    random: RandomSource,
    network: NetworkConditions,
    result: RunResult,
  ) {
    this.process = process;
    this.#schedule = schedule;
    this.random = random;
    this.#conditions = network;
    this.#result = result;
  }

  latencyMs(): number {
    return this.lagMs * this.random.next() + this.random.scaled(this.#conditions.latencyMs);
  }

  /** Whether this link had a fault that concerns this key since then. */
  hadFaultSince(key: string, sinceMs: number): boolean {
    return (
      this.isCut ||
      this.cannotListen ||
      this.lagMs > 0 ||
      this.process.phase !== 'running' ||
      (this.faults.get(key)?.atMs ?? -1) >= sinceMs
    );
  }

  note(keys: Iterable<string>): void {
    for (const key of keys) {
      const count = (this.faults.get(key)?.count ?? 0) + 1;
      this.faults.set(key, { atMs: this.#schedule.nowMs, count });
    }
  }

  /** Delivers a message once, twice, late or not at all. */
  carry(kind: MessageKind, keys: readonly string[], arrive: () => void): Delivery {
    const { lateMs, faultShare } = this.#conditions;
    const kinds = KINDS[kind];
    this.#result.messages += 1;
    if (this.isCut) {
      this.note(keys);
      return 'lost';
    }
    const draw = this.random.next();
    if (this.faultFree || draw >= faultShare) {
      this.#arriveIn(this.latencyMs(), kind, arrive);
      return 'carried';
    }
    this.#result.faulty += 1;
    this.note(keys);
    if (draw < faultShare / 3) {
      this.#result.fault(kinds.lost);
      return 'lost';
    }
    const again = (): void => {
      this.note(keys);
      arrive();
    };
    const laterMs = this.latencyMs() + this.random.scaled(lateMs);
    this.#arriveIn(laterMs, kind, again);
    if (draw < (faultShare * 2) / 3) {
      this.#result.fault(kinds.late);
      return 'carried';
    }
    this.#result.fault(kinds.doubled);
    this.#arriveIn(this.latencyMs(), kind, arrive);
    return 'carried';
  }

  #arriveIn(delayMs: number, kind: MessageKind, arrive: () => void): void {
    if (kind === 'request') this.#schedule.quietlyAfter(delayMs, arrive);
    else this.#schedule.after(delayMs, () => this.process.deliver(arrive));
  }
}
