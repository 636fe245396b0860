/**
 * A simulated server of a quorum: the same answers as the script of stores/quorum/redis-member.ts, on a clock of its own.
 * It keeps its records over a restart, and handles nothing while it is paused or down.
 */
import { type Accept, type Ballot, compareBallots, type MemberReply, type Request } from './library.js';
import type { Schedule } from './schedule.js';

interface StoredRecord {
  promised: Ballot;
  accepted: Ballot;
  isFree: boolean;
  value: string;
  forgetAt: number;
}

export class SimulatedMember {
  readonly place: number;
  /** Its clock minus the simulation's. */
  readonly aheadMs: number;
  phase: 'up' | 'paused' | 'down' = 'up';
  /** Called for every value that it accepts. */
  onAccepted: (place: number, accept: Accept) => void = () => {};
  readonly #schedule: Schedule;
  readonly #records = new Map<string, StoredRecord>();
  #waiting: (() => void)[] = [];

  constructor(place: number, aheadMs: number, schedule: Schedule) {
    this.place = place;
    this.aheadMs = aheadMs;
    this.#schedule = schedule;
  }

  get time(): number {
    return this.#schedule.nowMs + this.aheadMs;
  }

  /** A message has arrived. While paused, the server handles it later; while down, never. */
  receive(handle: () => void): void {
    if (this.phase === 'up') handle();
    else if (this.phase === 'paused') this.#waiting.push(handle);
  }

  pause(): void {
    if (this.phase === 'up') this.phase = 'paused';
  }

  crash(): void {
    this.phase = 'down';
    this.#waiting = [];
  }

  goOn(): void {
    this.phase = 'up';
    for (const handle of this.#waiting.splice(0)) handle();
  }

  handle(request: Request): MemberReply {
    const { time } = this;
    const found = this.#recordOf(request.key, time);
    const isDone = request.kind !== 'peek' && time <= request.until && this.#change(request, found, time);
    const keptMs = Math.max(0, found.forgetAt - time);
    const { promised, accepted, value } = found;
    return { time, isDone, promised, accepted, value, keptMs, isOnce: true };
  }

  #change(request: Exclude<Request, { kind: 'peek' }>, found: StoredRecord, time: number): boolean {
    const { key, ballot } = request;
    const forgetAt = Math.max(found.forgetAt, time + request.keepMs);
    if (request.kind === 'prepare') {
      const { when } = request;
      const isNamed = typeof when === 'object' && when.accepted === found.accepted;
      const isMeant = when === 'always' || isNamed || (found.accepted !== '' && found.isFree);
      if (!isMeant || compareBallots(found.promised, ballot) >= 0) return false;
      this.#records.set(key, { ...found, promised: ballot, forgetAt });
      return true;
    }
    if (found.accepted === ballot) {
      this.#records.set(key, { ...found, forgetAt });
      return true;
    }
    if (compareBallots(ballot, found.promised) < 0) return false;
    const { value, isFree, next } = request;
    this.#records.set(key, {
      promised: next === '' ? ballot : next,
      accepted: ballot,
      isFree,
      value,
      forgetAt,
    });
    this.onAccepted(this.place, request);
    return true;
  }

  #recordOf(key: string, time: number): StoredRecord {
    const record = this.#records.get(key);
    if (record && record.forgetAt > time) return record;
    this.#records.delete(key);
    return { promised: '', accepted: '', isFree: false, value: '', forgetAt: 0 };
  }
}
