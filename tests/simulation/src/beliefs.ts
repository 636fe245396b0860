/**
 * Who believes to hold what. A belief is a lease in the hands of a running process whose `held` says yes at this
 * moment; a paused process believes nothing until it runs again, and then at once.
 *
 * Checked: believers of a key never take more than its capacity; no belief outlives the expiry that the store last
 * decided; `held` never comes back; a loss is told by the signal soon; tokens of exclusive leases rise in the order
 * in which the leases begin; nothing begins stale; nothing is handed over once its process has heard of an eviction.
 * Leases on evicted holds are left out of overlap and token order: an eviction takes the lock from a believer.
 */

import type { HoldRecord, Ledger } from './ledger.js';
import type { Lease } from './library.js';
import type { SimulatedProcess } from './process.js';
import type { Resident } from './resident.js';
import { type Server, STORE_EPOCH_MS } from './server.js';
import type { Tally } from './tally.js';

/** How long after a loss its signal may come: timers are late, and a pause may have eaten the time. */
const SIGNAL_MS = 100;
/** How often the core compares its two clocks, and a little. */
const LOOK_MS = 1_050;

export interface Belief {
  readonly process: SimulatedProcess;
  /** As the store spells it. */
  readonly key: string;
  readonly lease: Lease;
  readonly record: HoldRecord;
  /** Its user asks `held`; others trust the signal alone, and nothing is asked for them. */
  readonly isWatchful: boolean;
  /** Of its process, when the hold was first asked for. */
  readonly suspendedMs: number;
  doubted: { readonly atMs: number; readonly pausedMs: number } | null;
}

/** How a lease begins. */
export interface Begun {
  readonly isWatchful: boolean;
  /** At this moment; in a group, perhaps earlier, while others were waited for; or in another process. */
  readonly how: 'fresh' | 'earlier' | 'adopted';
}

interface Believers {
  readonly held: Set<Belief>;
  readonly tokens: Set<number>;
  exclusiveMax: number;
}

export class Beliefs {
  readonly #byKey = new Map<string, Believers>();
  readonly #server: Server;
  readonly #ledger: Ledger;
  readonly #tally: Tally;

  constructor(server: Server, ledger: Ledger, tally: Tally) {
    this.#server = server;
    this.#ledger = ledger;
    this.#tally = tally;
    ledger.onReleased = (record) => this.#releasedUnder(record);
  }

  /** A lease reached its user. */
  begin({ process, holds }: Resident, key: string, lease: Lease, begun: Begun): Belief | null {
    const { token } = lease;
    const { isWatchful, how } = begun;
    const record = this.#ledger.recordOf(key, token);
    if (!record) {
      this.#violate('unknown token', key, `${process.name} got token ${token}, which the store never gave`);
      return null;
    }
    const { suspendedMs } = (how === 'adopted' ? null : holds.get(record.hold.number)) ?? process;
    const belief: Belief = { process, key, lease, record, isWatchful, suspendedMs, doubted: null };
    const believers = this.#believersOf(key);
    believers.held.add(belief);
    this.#tally.leases += 1;
    this.#tally.note(this.#server.exactMs - STORE_EPOCH_MS, key, process.name, 'begins', token);
    if (!lease.held) this.#violate('stale at once', key, this.#tell(belief));
    if (how === 'fresh' && record.heardOfEviction && token > record.token)
      this.#violate('begun after eviction', key, this.#tell(belief));
    if (how !== 'adopted') this.#checkToken(believers, belief);
    this.check(belief);
    this.#checkOverlap(key);
    return belief;
  }

  /** Its user let go of it, or its process crashed. */
  end(belief: Belief): void {
    const { key, process, lease } = belief;
    this.#tally.note(
      this.#server.exactMs - STORE_EPOCH_MS,
      key,
      process.name,
      'ends',
      lease.token,
      lease.state,
    );
    this.#byKey.get(belief.key)?.held.delete(belief);
  }

  endOf(process: SimulatedProcess): void {
    for (const { held } of this.#byKey.values()) {
      for (const belief of held) if (belief.process === process) held.delete(belief);
    }
  }

  /** At the moment a process runs again, before anything of it does. */
  resumed(process: SimulatedProcess): void {
    for (const [key, { held }] of this.#byKey) {
      for (const belief of held) if (belief.process === process) this.check(belief);
      this.#checkOverlap(key);
    }
  }

  checkAll(): void {
    for (const [key, { held }] of this.#byKey) {
      for (const belief of held) this.check(belief);
      this.#checkOverlap(key);
    }
  }

  get count(): number {
    let count = 0;
    for (const { held } of this.#byKey.values()) count += held.size;
    return count;
  }

  countOf(process: SimulatedProcess, key: string): number {
    let count = 0;
    for (const belief of this.#byKey.get(key)?.held ?? []) if (belief.process === process) count += 1;
    return count;
  }

  check(belief: Belief): void {
    if (belief.process.phase !== 'running') return;
    if (belief.isWatchful && belief.lease.held) this.#checkHeld(belief);
    else this.#checkSignal(belief);
  }

  #checkHeld(belief: Belief): void {
    const { lease, record, key } = belief;
    if (belief.doubted) this.#violate('came back', key, this.#tell(belief));
    const pastMs = this.#server.exactMs - record.expiresAt;
    if (pastMs >= 0) this.#violate('outlived', key, `${this.#tell(belief)}, by ${pastMs.toFixed(1)} ms`);
    if (lease.remainingMs <= 0) this.#violate('nothing remains', key, this.#tell(belief));
  }

  /** Once `held` says no, or the store's expiry has passed, the signal has to follow soon. */
  #checkSignal(belief: Belief): void {
    const { process, lease, record, key, isWatchful } = belief;
    // Closing the locks releases what users still have in hand: that is no loss, nor is a handoff.
    if (lease.state === 'released' || lease.state === 'handed-off') return;
    const nowMs = this.#server.exactMs;
    if (!isWatchful && nowMs < record.expiresAt) return;
    belief.doubted ??= { atMs: nowMs, pausedMs: process.pausedMs };
    const runMs = nowMs - belief.doubted.atMs - (process.pausedMs - belief.doubted.pausedMs);
    // A deadline timer counts by the monotonic clock, which stood still while the machine was suspended: then the
    // signal follows from the next look at both clocks.
    const allowedMs = SIGNAL_MS + (process.suspendedMs > belief.suspendedMs ? LOOK_MS : 0);
    if (runMs > allowedMs && !lease.signal.aborted) this.#violate('no signal', key, this.#tell(belief));
  }

  #checkToken(believers: Believers, belief: Belief): void {
    const { token } = belief.lease;
    if (believers.tokens.has(token)) this.#violate('token twice', belief.key, this.#tell(belief));
    believers.tokens.add(token);
    this.#checkOrder(believers, belief);
  }

  #checkOrder(believers: Believers, belief: Belief): void {
    const { record, lease, key } = belief;
    if (record.permits !== record.capacity || record.ended === 'evicted') return;
    if (lease.token <= believers.exclusiveMax) {
      this.#violate('token order', key, `${this.#tell(belief)} began after ${believers.exclusiveMax}`);
    }
    believers.exclusiveMax = Math.max(believers.exclusiveMax, lease.token);
  }

  #checkOverlap(key: string): void {
    const { held } = this.#believersOf(key);
    if (held.size < 2) return;
    const sure: Belief[] = [];
    for (const belief of held) {
      if (!belief.isWatchful || belief.process.phase !== 'running' || belief.record.ended === 'evicted')
        continue;
      if (belief.lease.held) sure.push(belief);
    }
    let permits = 0;
    let capacity = Number.MAX_SAFE_INTEGER;
    for (const { record } of sure) {
      permits += record.permits;
      capacity = Math.min(capacity, record.capacity);
    }
    if (permits <= capacity) return;
    this.#violate('overlap', key, sure.map((belief) => this.#tell(belief)).join(' beside '));
  }

  #releasedUnder(record: HoldRecord): void {
    for (const belief of this.#byKey.get(record.key)?.held ?? []) {
      if (belief.record !== record || belief.process.phase !== 'running') continue;
      if (!belief.isWatchful || !belief.lease.held) continue;
      this.#violate('released while held', record.key, this.#tell(belief));
    }
  }

  #believersOf(key: string): Believers {
    const known = this.#byKey.get(key);
    if (known) return known;
    const believers: Believers = { held: new Set(), tokens: new Set(), exclusiveMax: 0 };
    this.#byKey.set(key, believers);
    return believers;
  }

  #tell({ process, lease, record }: Belief): string {
    return `${process.name} with token ${lease.token} (hold ${record.hold.number}, ${record.ended ?? 'open'})`;
  }

  #violate(kind: string, key: string, text: string): void {
    this.#tally.violate(kind, this.#server.exactMs - STORE_EPOCH_MS, `${key}: ${text}`);
  }
}
