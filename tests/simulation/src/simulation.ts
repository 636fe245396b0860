/** A simulation from a seed: processes with the real engine, one store, unreliable links, faults, and checks of everything. */

import { ANSWERS_MS, type Call, Calls } from './calls.js';
import type { Client } from './client.js';
import { type ConnectionParts, connect } from './connection.js';
import { DecisionChecker } from './decision-checker.js';
import { type Begun, LeaseChecker, type TrackedLease } from './lease-checker.js';
import { HoldfastError, type HoldId, type Lease, openLocks, type Store, type Waiter } from './library.js';
import { LivenessChecker } from './liveness-checker.js';
import { Link } from './network.js';
import { SimulatedProcess } from './process.js';
import { type KeySpec, NAMESPACE, type Profile, storeKeyOf, type Workload } from './profile.js';
import { connectToQuorum } from './quorum-connection.js';
import { QuorumServer } from './quorum-server.js';
import { RandomSource } from './random-source.js';
import { RunResult } from './run-result.js';
import { Schedule } from './schedule.js';
import { type OnDecision, Server, type StoreView } from './server.js';
import type { SimulatedMember } from './simulated-member.js';
import { isExpected, work } from './workers.js';

/** How often all leases, calls and keys are checked. */
const LOOK_MS = 20;
/** The share of users that never ask `held` and rely on the signal. */
const TRUSTS_SIGNAL_SHARE = 0.4;
/** How long after a crash or shutdown a new process starts. */
const RESTART_MS = [20, 3_000] as const;

export class Simulation {
  readonly profile: Profile;
  readonly random: RandomSource;
  readonly schedule = new Schedule();
  readonly result = new RunResult();
  readonly server: StoreView;
  /** The servers of a quorum; none where the store is one server. */
  readonly members: readonly SimulatedMember[];
  readonly leases: LeaseChecker;
  readonly calls: Calls;
  readonly clients: Client[] = [];
  /** No new work begins, and no fault happens. */
  isEnding = false;
  readonly #decisions: DecisionChecker;
  readonly #liveness: LivenessChecker;
  readonly #connect: (
    parts: Omit<ConnectionParts, 'server'>,
    unreachable: ReadonlySet<number>,
    workload: Workload,
  ) => Store;
  #count = 0;
  onStarted: (client: Client) => void = () => {};

  constructor(profile: Profile, seed: number) {
    this.profile = profile;
    this.random = new RandomSource(seed);
    const { schedule, result } = this;
    this.#decisions = new DecisionChecker(schedule, result);
    const onDecision: OnDecision = (decided) => this.#decisions.onDecision(decided);
    if (profile.members) {
      const quorum = new QuorumServer(profile.members, schedule, this.random.fork(), result, onDecision);
      this.members = quorum.members;
      this.server = quorum;
      this.#connect = (parts, unreachable, { servers }) =>
        connectToQuorum({ ...parts, server: quorum, unreachable, given: quorum.members.slice(0, servers) });
    } else {
      const one = new Server(schedule, onDecision);
      this.members = [];
      this.server = one;
      this.#connect = (parts) => connect({ ...parts, server: one });
    }
    this.#decisions.onLeft = (key, waiter) => this.#leftLine(key, waiter);
    this.leases = new LeaseChecker(this.server, this.#decisions, result);
    this.calls = new Calls(schedule, result);
    const { server, calls, leases } = this;
    this.#liveness = new LivenessChecker({
      schedule,
      server,
      calls,
      leases,
      decisions: this.#decisions,
      result,
      bounds: profile.bounds,
    });
    this.#checkAll();
  }

  /** Starts a process and its workers. */
  start(workload: Workload): Client {
    const { schedule, result, profile } = this;
    this.#count += 1;
    const process = new SimulatedProcess(`p${this.#count}`, schedule, this.random.fork(), profile.driftShare);
    const link = new Link(process, schedule, this.random.fork(), profile.network, result);
    const onWakeUp = (key: string, why: string): void => {
      result.note(schedule.nowMs, key, process.name, 'hears', why);
      if (why === 'evicted')
        this.#decisions.knowsEviction(key, ({ process: id }) => id === client.holdProcess);
    };
    const onHold = ({ process: id, number }: HoldId): void => {
      if (client.holdProcess !== id) result.note(schedule.nowMs, process.name, 'is', id);
      client.holdProcess = id;
      const { suspendedMs } = process;
      if (!client.holds.has(number)) client.holds.set(number, { sinceMs: schedule.nowMs, suspendedMs });
    };
    const unreachable = new Set<number>();
    const { variant } = profile;
    const store = this.#connect({ link, schedule, variant, onWakeUp, onHold }, unreachable, workload);
    const locks = openLocks(store, { owner: process.name, namespace: NAMESPACE }, process.clock);
    const client: Client = {
      process,
      link,
      locks,
      workload,
      unreachable,
      holdProcess: '',
      holds: new Map(),
      isClosing: false,
    };
    locks.on('acquired', ({ handedOver }) => {
      if (handedOver) result.handovers += 1;
    });
    process.onResume = () => this.leases.resumed(process);
    this.clients.push(client);
    for (let worker = 0; worker < workload.workers; worker++) {
      void work(this, client, this.random.fork()).catch((error: unknown) =>
        this.#unexpected(error, process.name),
      );
    }
    this.onStarted(client);
    return client;
  }

  /** A line of the history, with the time. */
  note(...parts: readonly string[]): void {
    this.result.note(this.schedule.nowMs, ...parts);
  }

  /** A fault of the store: it may be the reason for anything on any key. */
  noteFault(): void {
    for (const { link } of this.clients) link.note(this.server.states.keys());
  }

  crash(client: Client): void {
    client.process.crash();
    this.leases.endOf(client.process);
    this.calls.endOf(client);
    this.#replace(client);
  }

  /** An orderly shutdown: waiters are rejected, work drains or is cut off, and a new process starts. */
  async restart(client: Client): Promise<void> {
    const { calls, random } = this;
    client.isClosing = true;
    const wants = { permits: 0, capacity: 1 };
    const drain = random.pick([0, 100, 3_000]);
    const call = calls.begin(client, 'all keys', 'close', wants, drain + ANSWERS_MS);
    await client.locks.close({ drain });
    calls.end(call);
    this.#replace(client);
  }

  /** Another process starts in its place. */
  #replace(client: Client): void {
    this.clients.splice(this.clients.indexOf(client), 1);
    this.schedule.after(this.random.scaled(RESTART_MS), () => {
      if (!this.isEnding) this.start(client.workload);
    });
  }

  pickKey(random: RandomSource): KeySpec {
    const { keys } = this.profile;
    let left = random.next() * keys.reduce((sum, { weight }) => sum + weight, 0);
    for (const key of keys) {
      left -= key.weight;
      if (left < 0) return key;
    }
    return keys[0];
  }

  begin(
    client: Client,
    name: string,
    lease: Lease,
    random: RandomSource,
    how: Begun['how'] = 'fresh',
    maxHoldMs: number | null = null,
  ): TrackedLease | null {
    const asksHeld = !random.chance(TRUSTS_SIGNAL_SHARE);
    return this.leases.begin(client, storeKeyOf(name), lease, { asksHeld, how, maxHoldMs });
  }

  violate(kind: string, name: string, { process }: Client): void {
    this.result.violate(kind, this.schedule.nowMs, `${storeKeyOf(name)}: ${process.name}`);
  }

  handedOff(name: string, { token }: Lease): void {
    const record = this.#decisions.recordOf(storeKeyOf(name), token);
    if (record) record.isHandedOff = true;
    this.result.handoffs += 1;
  }

  /** A waiting call has settled. */
  waited(call: Call, willingMs: number, granted: boolean): void {
    if (!this.calls.open.has(call)) return;
    const tookMs = this.calls.end(call);
    const { result, profile, schedule } = this;
    result.longestWaitMs = Math.max(result.longestWaitMs, tookMs);
    if (granted) result.wait(this.profile.workloads.indexOf(call.client.workload), tookMs);
    const { waitMs } = profile.bounds;
    if (willingMs <= waitMs || tookMs <= waitMs) return;
    result.violate(
      'long wait',
      schedule.nowMs,
      `${call.key}: ${call.client.process.name} waited ${tookMs} ms`,
    );
  }

  /** Counts an error that users have to expect; any other is a violation. */
  countError(error: unknown, { process, isClosing }: Client, key: string): void {
    if (isClosing && error instanceof HoldfastError) return;
    switch (isExpected(error)) {
      case 'timeout':
        this.result.timeouts += 1;
        return;
      case 'store':
        this.result.storeErrors += 1;
        return;
      case 'loss':
      case 'abort':
        return;
      case null:
        this.#unexpected(error, `${process.name} on ${key}`);
    }
  }

  /** A place in the queue belongs to all waiting callers of the process, not to the one that took it. */
  #leftLine(key: string, { hold }: Waiter): void {
    const { calls, schedule, result, profile } = this;
    if (!profile.alike) return;
    const client = this.clients.find(({ holdProcess }) => holdProcess === hold.process);
    const sinceMs = client?.holds.get(hold.number)?.sinceMs ?? 0;
    for (const call of calls.open) {
      if (call.client !== client || call.key !== key || call.what !== 'acquire') continue;
      if (call.sinceMs >= sinceMs) continue;
      result.placesLost += 1;
      const text = `${key}: ${call.client.process.name} left the line while a caller waited that it stood for`;
      result.violate('place lost', schedule.nowMs, text);
      return;
    }
  }

  #checkAll(): void {
    this.calls.check();
    this.leases.checkAll();
    this.#liveness.check(this.clients);
    this.schedule.after(LOOK_MS, () => this.#checkAll());
  }

  #unexpected(error: unknown, where: string): void {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.result.violate('unexpected error', this.schedule.nowMs, `${where}: ${text}`);
  }
}
