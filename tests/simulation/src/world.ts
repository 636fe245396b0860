/** A world from a seed: processes with the real engine in them, one store, bad lines, mishaps, and eyes everywhere. */

import { type Begun, type Belief, Beliefs } from './beliefs.js';
import { ANSWERS_MS, type Call, Calls } from './calls.js';
import { connect } from './connection.js';
import { Dice } from './dice.js';
import { Ledger } from './ledger.js';
import type { Lease } from './library.js';
import { HoldfastError, type HoldId, openLocks, type Waiter } from './library.js';
import { Liveness } from './liveness.js';
import { Link } from './network.js';
import { SimulatedProcess } from './process.js';
import { type Crew, type KeySpec, NAMESPACE, type Profile, storeKeyOf } from './profile.js';
import type { Resident } from './resident.js';
import { Schedule } from './schedule.js';
import { Server } from './server.js';
import { Tally } from './tally.js';
import { isExpected, work } from './workers.js';

/** How often all beliefs, calls and keys are looked at. */
const LOOK_MS = 20;
/** How many users never ask whether they hold, and wait for the signal. */
const TRUSTS_SIGNAL_SHARE = 0.4;
/** How long a crashed process stays away before another takes its place. */
const RESTART_MS = [20, 3_000] as const;

export class World {
  readonly profile: Profile;
  readonly dice: Dice;
  readonly schedule = new Schedule();
  readonly tally = new Tally();
  readonly server: Server;
  readonly beliefs: Beliefs;
  readonly calls: Calls;
  readonly residents: Resident[] = [];
  /** No new work is begun, and nothing goes wrong any more. */
  isEnding = false;
  readonly #ledger: Ledger;
  readonly #liveness: Liveness;
  #count = 0;
  onSettled: (resident: Resident) => void = () => {};

  constructor(profile: Profile, seed: number) {
    this.profile = profile;
    this.dice = new Dice(seed);
    const { schedule, tally } = this;
    this.#ledger = new Ledger(schedule, tally);
    this.server = new Server(schedule, (decided) => this.#ledger.witness(decided));
    this.#ledger.onLeft = (key, waiter) => this.#leftLine(key, waiter);
    this.beliefs = new Beliefs(this.server, this.#ledger, tally);
    this.calls = new Calls(schedule, tally);
    const { server, calls, beliefs } = this;
    this.#liveness = new Liveness({
      schedule,
      server,
      calls,
      beliefs,
      ledger: this.#ledger,
      tally,
      bounds: profile.bounds,
    });
    this.#look();
  }

  /** A process moves in and starts working. */
  settle(crew: Crew): Resident {
    const { schedule, tally, server, profile } = this;
    this.#count += 1;
    const process = new SimulatedProcess(`p${this.#count}`, schedule, this.dice.fork());
    const link = new Link(process, schedule, this.dice.fork(), profile.weather, tally);
    const onHint = (key: string, why: string): void => {
      tally.note(schedule.nowMs, key, process.name, 'hears', why);
      if (why === 'evicted')
        this.#ledger.heardOfEviction(key, ({ process: id }) => id === resident.holdProcess);
    };
    const onHold = ({ process: id, number }: HoldId): void => {
      if (resident.holdProcess !== id) tally.note(schedule.nowMs, process.name, 'is', id);
      resident.holdProcess = id;
      const { suspendedMs } = process;
      if (!resident.holds.has(number)) resident.holds.set(number, { sinceMs: schedule.nowMs, suspendedMs });
    };
    const store = connect({ server, link, schedule, variant: profile.variant, onHint, onHold });
    const locks = openLocks(store, { owner: process.name, namespace: NAMESPACE }, process.clock);
    const resident: Resident = {
      process,
      link,
      locks,
      crew,
      holdProcess: '',
      holds: new Map(),
      isClosing: false,
    };
    locks.on('acquired', ({ handedOver }) => {
      if (handedOver) tally.handovers += 1;
    });
    process.onResume = () => this.beliefs.resumed(process);
    this.residents.push(resident);
    for (let worker = 0; worker < crew.workers; worker++) {
      void work(this, resident, this.dice.fork()).catch((error: unknown) =>
        this.#unexpected(error, process.name),
      );
    }
    this.onSettled(resident);
    return resident;
  }

  crash(resident: Resident): void {
    const { process, crew } = resident;
    process.crash();
    this.beliefs.endOf(process);
    this.calls.endOf(resident);
    this.residents.splice(this.residents.indexOf(resident), 1);
    this.schedule.at(this.schedule.nowMs + this.dice.scaled(RESTART_MS), () => {
      if (!this.isEnding) this.settle(crew);
    });
  }

  /** An orderly shutdown: waiters are turned away, work drains or is cut off, and another process takes its place. */
  async retire(resident: Resident): Promise<void> {
    const { calls, schedule, dice } = this;
    resident.isClosing = true;
    const wants = { permits: 0, capacity: 1 };
    const drain = dice.pick([0, 100, 3_000]);
    const boundMs = drain + ANSWERS_MS;
    const call = calls.begin({ resident, key: 'all keys', what: 'close', wants, boundMs });
    await resident.locks.close({ drain });
    calls.end(call);
    this.residents.splice(this.residents.indexOf(resident), 1);
    schedule.at(schedule.nowMs + dice.scaled(RESTART_MS), () => {
      if (!this.isEnding) this.settle(resident.crew);
    });
  }

  pickKey(dice: Dice): KeySpec {
    const { keys } = this.profile;
    let left = dice.next() * keys.reduce((sum, { weight }) => sum + weight, 0);
    for (const key of keys) {
      left -= key.weight;
      if (left < 0) return key;
    }
    return keys[0];
  }

  begin(
    resident: Resident,
    name: string,
    lease: Lease,
    dice: Dice,
    how: Begun['how'] = 'fresh',
  ): Belief | null {
    const isWatchful = !dice.chance(TRUSTS_SIGNAL_SHARE);
    return this.beliefs.begin(resident, storeKeyOf(name), lease, { isWatchful, how });
  }

  handedOff(name: string, { token }: Lease): void {
    const record = this.#ledger.recordOf(storeKeyOf(name), token);
    if (record) record.isHandedOff = true;
    this.tally.handoffs += 1;
  }

  /** A call for a lock has settled, one way or the other. */
  waited(call: Call, willingMs: number, granted: boolean): void {
    if (!this.calls.open.has(call)) return;
    const tookMs = this.calls.end(call);
    const { tally, profile, schedule } = this;
    tally.longestWaitMs = Math.max(tally.longestWaitMs, tookMs);
    if (granted) tally.wait(this.profile.crews.indexOf(call.resident.crew), tookMs);
    const { waitMs } = profile.bounds;
    if (willingMs <= waitMs || tookMs <= waitMs) return;
    tally.violate(
      'long wait',
      schedule.nowMs,
      `${call.key}: ${call.resident.process.name} waited ${tookMs} ms`,
    );
  }

  /** Counts an error that a user may well get, and complains of any other. */
  sort(error: unknown, { process, isClosing }: Resident, key: string): void {
    if (isClosing && error instanceof HoldfastError) return;
    switch (isExpected(error)) {
      case 'timeout':
        this.tally.timeouts += 1;
        return;
      case 'store':
        this.tally.storeErrors += 1;
        return;
      case 'loss':
      case 'abort':
        return;
      case null:
        this.#unexpected(error, `${process.name} on ${key}`);
    }
  }

  /** A place in line belongs to whoever waits in that process, not to the one caller that took it. */
  #leftLine(key: string, { hold }: Waiter): void {
    const { calls, schedule, tally, profile } = this;
    if (!profile.alike) return;
    const resident = this.residents.find(({ holdProcess }) => holdProcess === hold.process);
    const sinceMs = resident?.holds.get(hold.number)?.sinceMs ?? 0;
    for (const call of calls.open) {
      if (call.resident !== resident || call.key !== key || call.what !== 'acquire') continue;
      if (call.sinceMs >= sinceMs) continue;
      tally.placesLost += 1;
      const text = `${key}: ${call.resident.process.name} left the line while a caller waited that it stood for`;
      tally.violate('place lost', schedule.nowMs, text);
      return;
    }
  }

  #look(): void {
    this.calls.check();
    this.beliefs.checkAll();
    this.#liveness.check(this.residents);
    this.schedule.at(this.schedule.nowMs + LOOK_MS, () => this.#look());
  }

  #unexpected(error: unknown, where: string): void {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.tally.violate('unexpected error', this.schedule.nowMs, `${where}: ${text}`);
  }
}
