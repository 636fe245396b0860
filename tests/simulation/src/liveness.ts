/**
 * What must not go on for long: a hold that nobody stands on (an orphan), and a key that stands idle while somebody
 * wants it. Faults excuse some of it, so both are counted from the last fault that could be the reason.
 */

import type { Beliefs } from './beliefs.js';
import type { Calls } from './calls.js';
import type { Ledger } from './ledger.js';
import { type HoldId, type State, type Waiter, WINDOW_MS } from './library.js';
import type { Bounds } from './profile.js';
import type { Resident } from './resident.js';
import type { Schedule } from './schedule.js';
import type { Server } from './server.js';
import type { Tally } from './tally.js';

/** An orphan is given back at once: a round trip, and more for every fault on its way. */
const ORPHAN_MS = 500;
const ORPHAN_MS_A_FAULT = 2_500;
/** How long before it began a fault may be the reason for an orphan. */
const ORPHAN_LOOK_BACK_MS = 1_000;
/** How far back a fault may be the reason why a key stands idle now: a lost claim is awaited for so long. */
const LOOK_BACK_MS = 1_500;
/** A key that changes hands is free for this long, and no fault needed: a release, a hint and a claim on their way. */
const CHANGE_MS = 40;

interface Orphan {
  readonly sinceMs: number;
  readonly faults: number;
}

interface Idle {
  readonly sinceMs: number;
  /** When something last happened that excuses it. */
  excusedMs: number;
}

interface Parts {
  readonly schedule: Schedule;
  readonly server: Server;
  readonly calls: Calls;
  readonly beliefs: Beliefs;
  readonly ledger: Ledger;
  readonly tally: Tally;
  readonly bounds: Bounds;
}

export class Liveness {
  readonly #parts: Parts;
  readonly #orphans = new Map<string, Orphan>();
  readonly #idle = new Map<string, Idle>();
  #checkedMs = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  check(residents: readonly Resident[]): void {
    const { schedule, server } = this.#parts;
    const sinceMs = schedule.nowMs - this.#checkedMs;
    this.#checkedMs = schedule.nowMs;
    for (const [key, state] of server.states) {
      this.#checkOrphans(key, state, residents);
      this.#checkIdle(key, state, residents, sinceMs);
    }
  }

  #checkOrphans(key: string, state: State, residents: readonly Resident[]): void {
    for (const resident of residents) {
      const { link, process } = resident;
      const id = `${process.name} ${key}`;
      const held = this.#holdsOf(resident, key, state);
      const wanted = held === 0 ? 0 : this.#standingOn(resident, key);
      if (held <= wanted || link.lagMs > 0 || !isWell(resident)) {
        this.#orphans.delete(id);
        continue;
      }
      const { nowMs } = this.#parts.schedule;
      const { count: faults, atMs: faultMs } = link.trouble.get(key) ?? {
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

  #holdsOf(resident: Resident, key: string, { holders }: State): number {
    const { server, ledger } = this.#parts;
    const own = holders.filter(({ hold, expiresAt }) => isOf(resident, hold) && expiresAt > server.now);
    return own.filter(({ hold }) => !ledger.isNobodys(key, hold)).length;
  }

  #standingOn(resident: Resident, key: string): number {
    const { calls, beliefs } = this.#parts;
    let count = beliefs.countOf(resident.process, key);
    for (const call of calls.open) if (call.resident === resident && call.key === key) count += 1;
    return count;
  }

  #checkIdle(key: string, state: State, residents: readonly Resident[], stepMs: number): void {
    const { schedule, tally, bounds } = this.#parts;
    const { nowMs } = schedule;
    const wanting = this.#wanting(key, state, residents);
    if (wanting !== null) tally.wantedMs += stepMs;
    if (!wanting || !this.#fits(state, wanting)) {
      this.#idle.delete(key);
      return;
    }
    const idle = this.#idle.get(key) ?? { sinceMs: nowMs, excusedMs: Number.NEGATIVE_INFINITY };
    this.#idle.set(key, idle);
    if (this.#endedByExpiry(state) && idle.excusedMs < idle.sinceMs) idle.excusedMs = idle.sinceMs;
    if (this.#isExcused(key, state, residents, idle)) idle.excusedMs = nowMs;
    const idleMs = nowMs - idle.sinceMs;
    const isExcused = idle.excusedMs >= idle.sinceMs;
    tally.longestIdleMs = Math.max(tally.longestIdleMs, idleMs);
    if (!isExcused) {
      tally.longestCleanIdleMs = Math.max(tally.longestCleanIdleMs, idleMs);
      if (idleMs > CHANGE_MS) tally.idleMs += stepMs;
    }
    if (!isExcused && idleMs > bounds.idleMs) {
      this.#violate('idle', key, `free and wanted for ${idleMs.toFixed(0)} ms with no fault near`);
    } else if (isExcused && nowMs - idle.excusedMs > bounds.idleMsWorst) {
      this.#violate('idle', key, `free and wanted for ${idleMs.toFixed(0)} ms`);
    }
  }

  /** The first that wants the key and could take it: from the line, or else any call that waits. */
  #wanting(
    key: string,
    state: State,
    residents: readonly Resident[],
  ): { permits: number; capacity: number } | null {
    const { now } = this.#parts.server;
    for (const waiter of state.waiters) {
      const resident = residents.find((other) => isOf(other, waiter.hold));
      if (resident && isWell(resident) && waiter.expiresAt > now && this.#awaits(resident, key))
        return waiter;
    }
    if (state.waiters.length > 0) return null;
    for (const call of this.#parts.calls.open) {
      if (call.key === key && call.what === 'acquire' && isWell(call.resident)) return call.wants;
    }
    return null;
  }

  #awaits(resident: Resident, key: string): boolean {
    for (const call of this.#parts.calls.open) {
      if (call.resident === resident && call.key === key && call.what === 'acquire') return true;
    }
    return false;
  }

  #fits(state: State, wants: { readonly permits: number; readonly capacity: number }): boolean {
    const { now } = this.#parts.server;
    let { permits, capacity } = wants;
    for (const taker of [...state.holders, ...state.rests]) {
      if (taker.expiresAt <= now) continue;
      permits += taker.permits;
      capacity = Math.min(capacity, taker.capacity);
    }
    return permits <= capacity;
  }

  /** A fault lately on the way of anybody who wants the key, or a waiter in line that cannot come. */
  #isExcused(key: string, state: State, residents: readonly Resident[], idle: Idle): boolean {
    const sinceMs = Math.max(idle.sinceMs - LOOK_BACK_MS, idle.excusedMs);
    for (const resident of residents) {
      const isIn = this.#awaits(resident, key) || state.waiters.some(({ hold }) => isOf(resident, hold));
      if (isIn && resident.link.troubleSince(key, sinceMs)) return true;
    }
    return state.waiters.some((waiter) => this.#isDead(waiter, residents));
  }

  /** Nobody tells the line that a holder died or a rest is over: whoever asks next finds out, by the poll at the latest. */
  #endedByExpiry({ holders, rests }: State): boolean {
    const { now } = this.#parts.server;
    return [...holders, ...rests].some(({ expiresAt }) => expiresAt <= now);
  }

  #isDead({ hold, wokenAt }: Waiter, residents: readonly Resident[]): boolean {
    if (wokenAt !== null && this.#parts.server.now >= wokenAt + WINDOW_MS) return false;
    const resident = residents.find((other) => isOf(other, hold));
    return !resident || !isWell(resident);
  }

  #violate(kind: string, key: string, text: string): void {
    this.#parts.tally.violate(kind, this.#parts.schedule.nowMs, `${key}: ${text}`);
  }
}

function isOf({ holdProcess }: Resident, { process }: HoldId): boolean {
  return process === holdProcess;
}

function isWell({ process, link }: Resident): boolean {
  return process.phase === 'running' && !link.isCut;
}
