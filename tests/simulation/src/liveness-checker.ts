/**
 * Checks that no hold stays without a lease (an orphan), and that no key stays idle while a caller wants it. Faults
 * excuse some of it: both are counted from the last fault that could be the reason.
 */

import { type Calls, sumOf, type Wants } from './calls.js';
import type { Client } from './client.js';
import type { DecisionChecker } from './decision-checker.js';
import type { LeaseChecker } from './lease-checker.js';
import { type HoldId, type State, type Waiter, WINDOW_MS } from './library.js';
import type { Bounds } from './profile.js';
import type { RunResult } from './run-result.js';
import type { Schedule } from './schedule.js';
import type { StoreView } from './server.js';

/** An orphan is released within a round trip, plus a share for every fault meanwhile. */
const ORPHAN_MS = 500;
const ORPHAN_MS_A_FAULT = 2_500;
/** A fault up to this long before it began excuses an orphan. */
const ORPHAN_LOOK_BACK_MS = 1_000;
/** A fault up to this long ago excuses an idle key: a lost claim is awaited for this long. */
const LOOK_BACK_MS = 1_500;
/** A key that changes processes is free for this long without any fault: a release, a wake-up and a claim in flight. */
const CHANGE_MS = 40;

interface Orphan {
  readonly sinceMs: number;
  readonly faults: number;
}

interface Idle {
  readonly sinceMs: number;
  /** When something last excused it. */
  excusedMs: number;
}

interface Parts {
  readonly schedule: Schedule;
  readonly server: StoreView;
  readonly calls: Calls;
  readonly leases: LeaseChecker;
  readonly decisions: DecisionChecker;
  readonly result: RunResult;
  readonly bounds: Bounds;
}

export class LivenessChecker {
  readonly #parts: Parts;
  readonly #orphans = new Map<string, Orphan>();
  readonly #idle = new Map<string, Idle>();
  #checkedMs = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  check(clients: readonly Client[]): void {
    const { schedule, server } = this.#parts;
    const sinceMs = schedule.nowMs - this.#checkedMs;
    this.#checkedMs = schedule.nowMs;
    for (const [key, state] of server.states) {
      this.#checkOrphans(key, state, clients);
      this.#checkIdle(key, state, clients, sinceMs);
    }
  }

  #checkOrphans(key: string, state: State, clients: readonly Client[]): void {
    for (const client of clients) {
      const { link, process } = client;
      const id = `${process.name} ${key}`;
      const held = this.#holdsOf(client, key, state);
      const wanted = held === 0 ? 0 : this.#standingOn(client, key);
      if (held <= wanted || link.lagMs > 0 || !this.#canRun(client)) {
        this.#orphans.delete(id);
        continue;
      }
      const { nowMs } = this.#parts.schedule;
      const { count: faults, atMs: faultMs } = link.faults.get(key) ?? {
        count: 0,
        atMs: Number.NEGATIVE_INFINITY,
      };
      const recent = faultMs > nowMs - ORPHAN_LOOK_BACK_MS ? 1 : 0;
      const orphan = this.#orphans.get(id) ?? { sinceMs: nowMs, faults: faults - recent };
      this.#orphans.set(id, orphan);
      const allowedMs = ORPHAN_MS + (faults - orphan.faults) * ORPHAN_MS_A_FAULT;
      const ageMs = nowMs - orphan.sinceMs;
      if (ageMs > allowedMs)
        this.#violate('orphan', key, `${process.name} has held it for nobody for ${ageMs} ms`);
    }
  }

  #holdsOf(client: Client, key: string, { holders }: State): number {
    const { server, decisions } = this.#parts;
    const own = holders.filter(({ hold, expiresAt }) => isOf(client, hold) && expiresAt > server.now);
    return own.filter(({ hold }) => !decisions.isUnattended(key, hold)).length;
  }

  #standingOn(client: Client, key: string): number {
    const { calls, leases } = this.#parts;
    let count = leases.countOf(client.process, key);
    for (const call of calls.open) if (call.client === client && call.key === key) count += 1;
    return count;
  }

  #checkIdle(key: string, state: State, clients: readonly Client[], stepMs: number): void {
    const { schedule, result, bounds } = this.#parts;
    const { nowMs } = schedule;
    const wanting = this.#wanting(key, state, clients);
    if (wanting !== null) result.wantedMs += stepMs;
    if (!wanting || !this.#fits(state, wanting)) {
      this.#idle.delete(key);
      return;
    }
    const idle = this.#idle.get(key) ?? { sinceMs: nowMs, excusedMs: Number.NEGATIVE_INFINITY };
    this.#idle.set(key, idle);
    if (this.#endedByExpiry(state) && idle.excusedMs < idle.sinceMs) idle.excusedMs = idle.sinceMs;
    if (this.#isExcused(key, state, clients, idle)) idle.excusedMs = nowMs;
    const idleMs = nowMs - idle.sinceMs;
    const isExcused = idle.excusedMs >= idle.sinceMs;
    result.longestIdleMs = Math.max(result.longestIdleMs, idleMs);
    if (!isExcused) {
      result.longestCleanIdleMs = Math.max(result.longestCleanIdleMs, idleMs);
      if (idleMs > CHANGE_MS) result.idleMs += stepMs;
    }
    if (!isExcused && idleMs > bounds.idleMs) {
      this.#violate('idle', key, `free and wanted for ${idleMs.toFixed(0)} ms with no fault near`);
    } else if (isExcused && nowMs - idle.excusedMs > bounds.idleMsWorst) {
      this.#violate('idle', key, `free and wanted for ${idleMs.toFixed(0)} ms`);
    }
  }

  /** The first waiter that could take the key, or else any waiting call. */
  #wanting(key: string, state: State, clients: readonly Client[]): Wants | null {
    const { now } = this.#parts.server;
    for (const waiter of state.waiters) {
      const client = clients.find((other) => isOf(other, waiter.hold));
      if (client && this.#canRun(client) && waiter.expiresAt > now && this.#awaits(client, key))
        return waiter;
    }
    if (state.waiters.length > 0) return null;
    for (const call of this.#parts.calls.open) {
      if (call.key === key && call.what === 'acquire' && this.#canRun(call.client)) return call.wants;
    }
    return null;
  }

  #awaits(client: Client, key: string): boolean {
    for (const call of this.#parts.calls.open) {
      if (call.client === client && call.key === key && call.what === 'acquire') return true;
    }
    return false;
  }

  #fits(state: State, wants: Wants): boolean {
    const { now } = this.#parts.server;
    const live = [...state.holders, ...state.rests].filter(({ expiresAt }) => expiresAt > now);
    const { permits, capacity } = sumOf([wants, ...live]);
    return permits <= capacity;
  }

  /** A recent fault on the link of a process that wants the key, or a waiter that cannot respond. */
  #isExcused(key: string, state: State, clients: readonly Client[], idle: Idle): boolean {
    const sinceMs = Math.max(idle.sinceMs - LOOK_BACK_MS, idle.excusedMs);
    for (const client of clients) {
      const isIn = this.#awaits(client, key) || state.waiters.some(({ hold }) => isOf(client, hold));
      if (isIn && client.link.hadFaultSince(key, sinceMs)) return true;
    }
    return state.waiters.some((waiter) => this.#isDead(waiter, clients));
  }

  /** No wake-up is sent when a holder or a cool-down expires: the next claim finds out, by the poll at the latest. */
  #endedByExpiry({ holders, rests }: State): boolean {
    const { now } = this.#parts.server;
    return [...holders, ...rests].some(({ expiresAt }) => expiresAt <= now);
  }

  #isDead({ hold, wokenAt }: Waiter, clients: readonly Client[]): boolean {
    if (wokenAt !== null && this.#parts.server.now >= wokenAt + WINDOW_MS) return false;
    const client = clients.find((other) => isOf(other, hold));
    return !client || !this.#canRun(client);
  }

  /** Whether it runs, and reaches the store: of a quorum, a majority of the servers. */
  #canRun({ process, link, unreachable }: Client): boolean {
    return process.phase === 'running' && !link.isCut && this.#parts.server.answers(unreachable);
  }

  #violate(kind: string, key: string, text: string): void {
    this.#parts.result.violate(kind, this.#parts.schedule.nowMs, `${key}: ${text}`);
  }
}

function isOf({ holdProcess }: Client, { process }: HoldId): boolean {
  return process === holdProcess;
}
