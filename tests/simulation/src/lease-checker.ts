/**
 * Checks every lease in the hands of a user. A lease counts as held while its process runs and its `held` says yes; a
 * paused process is checked again at the moment it resumes.
 *
 * Checked: held leases of a key never exceed its capacity; no lease is held past the expiry that the store last
 * decided; `held` never returns to true; the signal aborts soon after a loss; tokens of exclusive leases rise in the
 * order in which the leases begin; no lease is over when it begins; no lease is handed over once its process knows of an
 * eviction; no lease lives longer than its `maxHold`; a lost lease says truly why. Overlap and token order leave out evicted holds: an eviction takes the lock from a holder.
 */

import { sumOf } from './calls.js';
import type { Client } from './client.js';
import type { DecisionChecker, HoldRecord } from './decision-checker.js';
import { DRIFT_SHARE, type Lease } from './library.js';
import type { SimulatedProcess } from './process.js';
import type { RunResult } from './run-result.js';
import { STORE_EPOCH_MS, type StoreView } from './server.js';

/** How long after a loss the signal may abort: timers are late, also after a pause. */
const SIGNAL_MS = 100;
/** How often the engine compares its two clocks, plus a margin. */
const LOOK_MS = 1_050;

export interface TrackedLease {
  readonly client: Client;
  readonly process: SimulatedProcess;
  /** The full key, with the namespace. */
  readonly key: string;
  readonly lease: Lease;
  readonly record: HoldRecord;
  /** Its user asks `held`; other users rely on the signal alone. */
  readonly asksHeld: boolean;
  /** How long its process had been suspended when the hold was first claimed. */
  readonly suspendedMs: number;
  /** The store's exact time by which its `maxHold` is over, by the slowest clock. */
  readonly limitMs: number;
  notHeld: { readonly atMs: number; readonly pausedMs: number } | null;
}

/** How a lease begins. */
export interface Begun {
  readonly asksHeld: boolean;
  /** At this moment; in a group, perhaps earlier, while the group waited for other keys; or by adoption. */
  readonly how: 'fresh' | 'earlier' | 'adopted';
  /** The longest it may live, if it was asked for. */
  readonly maxHoldMs: number | null;
}

interface LeasesOfKey {
  readonly held: Set<TrackedLease>;
  readonly tokens: Set<number>;
  exclusiveMax: number;
}

export class LeaseChecker {
  readonly #byKey = new Map<string, LeasesOfKey>();
  readonly #server: StoreView;
  readonly #decisions: DecisionChecker;
  readonly #result: RunResult;

  constructor(server: StoreView, decisions: DecisionChecker, result: RunResult) {
    this.#server = server;
    this.#decisions = decisions;
    this.#result = result;
    decisions.onReleased = (record) => this.#releasedUnder(record);
  }

  /** A user received a lease. */
  begin(client: Client, key: string, lease: Lease, begun: Begun): TrackedLease | null {
    const { process, holds } = client;
    const { token } = lease;
    const { asksHeld, how, maxHoldMs } = begun;
    const limitMs =
      this.#server.exactMs + (maxHoldMs ?? Number.POSITIVE_INFINITY) * (1 + 2 * DRIFT_SHARE) + 2;
    const record = this.#decisions.recordOf(key, token);
    if (!record) {
      this.#violate('unknown token', key, `${process.name} got token ${token}, which the store never gave`);
      return null;
    }
    const { suspendedMs } = (how === 'adopted' ? null : holds.get(record.hold.number)) ?? process;
    const about = { client, process, key, lease, record, asksHeld, suspendedMs, limitMs };
    const tracked: TrackedLease = { ...about, notHeld: null };
    const ofKey = this.#ofKey(key);
    ofKey.held.add(tracked);
    this.#result.leases += 1;
    this.#result.note(this.#server.exactMs - STORE_EPOCH_MS, key, process.name, 'begins', token);
    if (!lease.held) this.#violate('stale at once', key, this.#describe(tracked));
    if (how === 'fresh' && record.knowsEviction && token > record.token)
      this.#violate('begun after eviction', key, this.#describe(tracked));
    if (how !== 'adopted') this.#checkToken(ofKey, tracked);
    this.check(tracked);
    this.#checkOverlap(key);
    return tracked;
  }

  /** What can be known of a loss from outside: whether an operator, a close or its `maxHold` may have ended the lease. */
  #checkReason(tracked: TrackedLease): void {
    const { client, key, lease, record, limitMs } = tracked;
    const { reason } = lease.signal.reason as { readonly reason?: string };
    const isEvicted = record.ended === 'evicted';
    const may: Record<string, boolean> = {
      deadline: true,
      expired: this.#server.exactMs >= record.expiresAt,
      evicted: isEvicted,
      replaced: false,
      closed: client.isClosing,
      'max-hold': limitMs !== Number.POSITIVE_INFINITY,
    };
    if (!may[String(reason)]) this.#violate('wrong reason', key, `${this.#describe(tracked)} says ${reason}`);
  }

  /** The user released it, or its process crashed. */
  end(tracked: TrackedLease): void {
    const { key, process, lease } = tracked;
    if (process.phase === 'running' && lease.state === 'lost') this.#checkReason(tracked);
    this.#result.note(
      this.#server.exactMs - STORE_EPOCH_MS,
      key,
      process.name,
      'ends',
      lease.token,
      lease.state,
    );
    this.#byKey.get(tracked.key)?.held.delete(tracked);
  }

  endOf(process: SimulatedProcess): void {
    for (const { held } of this.#byKey.values()) {
      for (const tracked of held) if (tracked.process === process) held.delete(tracked);
    }
  }

  /** Called when a process resumes, before any of its code runs. */
  resumed(process: SimulatedProcess): void {
    for (const [key, { held }] of this.#byKey) {
      for (const tracked of held) if (tracked.process === process) this.check(tracked);
      this.#checkOverlap(key);
    }
  }

  checkAll(): void {
    for (const [key, { held }] of this.#byKey) {
      for (const tracked of held) this.check(tracked);
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
    for (const tracked of this.#byKey.get(key)?.held ?? []) if (tracked.process === process) count += 1;
    return count;
  }

  check(tracked: TrackedLease): void {
    if (tracked.process.phase !== 'running') return;
    if (tracked.asksHeld && tracked.lease.held) this.#checkHeld(tracked);
    else this.#checkSignal(tracked);
  }

  #checkHeld(tracked: TrackedLease): void {
    const { lease, record, key } = tracked;
    if (tracked.notHeld) this.#violate('came back', key, this.#describe(tracked));
    const pastMs = this.#server.exactMs - record.expiresAt;
    if (pastMs >= 0) this.#violate('outlived', key, `${this.#describe(tracked)}, by ${pastMs.toFixed(1)} ms`);
    if (this.#server.exactMs > tracked.limitMs)
      this.#violate('outlived its maxHold', key, this.#describe(tracked));
    if (lease.remainingMs <= 0) this.#violate('nothing remains', key, this.#describe(tracked));
  }

  /** Once `held` says no, or the store's expiry has passed, the signal must abort soon. */
  #checkSignal(tracked: TrackedLease): void {
    const { process, lease, record, key, asksHeld } = tracked;
    // `close` releases leases that users still have: neither that nor a handoff is a loss.
    if (lease.state === 'released' || lease.state === 'handed-off') return;
    const nowMs = this.#server.exactMs;
    if (!asksHeld && nowMs < record.expiresAt) return;
    tracked.notHeld ??= { atMs: nowMs, pausedMs: process.pausedMs };
    const runMs = nowMs - tracked.notHeld.atMs - (process.pausedMs - tracked.notHeld.pausedMs);
    // The deadline timer runs on the monotonic clock, which stood still while the machine was suspended: the signal
    // aborts at the next comparison of both clocks.
    const allowedMs = SIGNAL_MS + (process.suspendedMs > tracked.suspendedMs ? LOOK_MS : 0);
    if (runMs > allowedMs && !lease.signal.aborted) this.#violate('no signal', key, this.#describe(tracked));
  }

  #checkToken(ofKey: LeasesOfKey, tracked: TrackedLease): void {
    const { token } = tracked.lease;
    if (ofKey.tokens.has(token)) this.#violate('token twice', tracked.key, this.#describe(tracked));
    ofKey.tokens.add(token);
    this.#checkOrder(ofKey, tracked);
  }

  #checkOrder(ofKey: LeasesOfKey, tracked: TrackedLease): void {
    const { record, lease, key } = tracked;
    if (record.permits !== record.capacity || record.ended === 'evicted') return;
    if (lease.token <= ofKey.exclusiveMax) {
      this.#violate('token order', key, `${this.#describe(tracked)} began after ${ofKey.exclusiveMax}`);
    }
    ofKey.exclusiveMax = Math.max(ofKey.exclusiveMax, lease.token);
  }

  #checkOverlap(key: string): void {
    const { held } = this.#ofKey(key);
    if (held.size < 2) return;
    const sure: TrackedLease[] = [];
    for (const tracked of held) {
      if (!tracked.asksHeld || tracked.process.phase !== 'running' || tracked.record.ended === 'evicted')
        continue;
      if (tracked.lease.held) sure.push(tracked);
    }
    const { permits, capacity } = sumOf(sure.map(({ record }) => record));
    if (permits <= capacity) return;
    this.#violate('overlap', key, sure.map((tracked) => this.#describe(tracked)).join(' beside '));
  }

  #releasedUnder(record: HoldRecord): void {
    for (const tracked of this.#byKey.get(record.key)?.held ?? []) {
      if (tracked.record !== record || tracked.process.phase !== 'running') continue;
      if (!tracked.asksHeld || !tracked.lease.held) continue;
      this.#violate('released while held', record.key, this.#describe(tracked));
    }
  }

  #ofKey(key: string): LeasesOfKey {
    const known = this.#byKey.get(key);
    if (known) return known;
    const ofKey: LeasesOfKey = { held: new Set(), tokens: new Set(), exclusiveMax: 0 };
    this.#byKey.set(key, ofKey);
    return ofKey;
  }

  #describe({ process, lease, record }: TrackedLease): string {
    return `${process.name} with token ${lease.token} (hold ${record.hold.number}, ${record.ended ?? 'open'})`;
  }

  #violate(kind: string, key: string, text: string): void {
    this.#result.violate(kind, this.#server.exactMs - STORE_EPOCH_MS, `${key}: ${text}`);
  }
}
