/**
 * Which holders and waiters are provably gone. Every process that claims is noted in the database with its process id
 * and start time; a command that it runs under its locks may be noted too. A hold counts as gone when all that was
 * noted for it is. One that was never noted is never gone: the ttl decides.
 *
 * A hold that changes hands has notes of its own, and those of the process that made it count for it no more: first
 * a note that proves nothing, while it is on its way, then those of the process that renews it.
 */
import type { HoldId, State } from '../../protocol/index.js';
import type { SqliteDatabase } from './database.js';
import { holdName, NOBODY, processNotes, processOf } from './process-notes.js';
import { isProvablyGone, type NotedProcess, note, type ProcessTable } from './process-table.js';
import type { Records } from './records.js';

/** Whether a process is gone; and, by name, those of its holds that have notes of their own. */
interface Fate {
  readonly gone: boolean;
  readonly holds: ReadonlyMap<string, boolean>;
}

/** What one transaction found out, by process. */
export type Fates = Map<string, Fate>;

export const ALIVE: Fate = { gone: false, holds: new Map() };

/** All but `isOwn`, `standsBehind` and `accept` belong inside a transaction. */
export interface Liveness {
  isOwn(process: string): boolean;
  /** Whether this process made the hold and never gave it away, or adopted it. */
  standsBehind(hold: HoldId): boolean;
  /** Notes a process that claims for the first time. */
  introduce(process: string): void;
  /** From now on this process stands behind the hold. */
  adopt(hold: HoldId): void;
  /** The transaction that introduced and adopted them is through. */
  accept(processes: Iterable<string>, adopted: Iterable<HoldId>): void;
  /** From now on nobody does, and nothing but the ttl ends it. */
  handOff(hold: HoldId): void;
  /** It is over: nothing has to be known of it any more. */
  ended(hold: HoldId): void;
  /** The state with everything provably gone expired at `now`. */
  buryGone(state: State, now: number, fates: Fates): State;
  /** Notes another process id for all holds of this store, now and later. */
  record(pid: number): void;
  forget(pid: number): void;
  /** Takes the notes of this store back. */
  leave(): void;
}

type Entry = { readonly hold: HoldId; readonly expiresAt: number };

/** At most so many waiters are looked at; those behind them are when they come nearer. */
const WAITERS_CHECKED = 8;
/** How many others a newcomer looks at, to clear away what dead processes left. */
const TIDIED = 4;
/** How many holds that changed hands are remembered. Of one forgotten, this process thinks that it lives till its ttl. */
const REMEMBERED = 4_096;

export function liveness(database: SqliteDatabase, table: ProcessTable, kept: Records): Liveness {
  const notes = processNotes(database);
  const own = new Set<string>();
  /** By name: holds that this process made and handed off, and holds of others that it adopted. */
  const away = new Set<string>();
  const adopted = new Set<string>();
  const pids = new Map<number, NotedProcess>([[process.pid, note(process.pid, table)]]);

  const areGone = (those: readonly NotedProcess[]): boolean =>
    those.length > 0 && those.every((noted) => isProvablyGone(noted, table));

  function standsBehind(hold: HoldId): boolean {
    if (own.has(hold.process)) return away.size === 0 || !away.has(holdName(hold));
    return adopted.size > 0 && adopted.has(holdName(hold));
  }

  function fateOf(name: string, fates: Fates): Fate {
    let fate = fates.get(name);
    if (!fate) {
      const found = notes.of(name);
      const holds = new Map<string, boolean>();
      for (const [noted, those] of found) if (noted !== name) holds.set(noted, areGone(those));
      fate = { gone: areGone(found.get(name) ?? []), holds };
      fates.set(name, fate);
    }
    return fate;
  }

  function isGone({ hold }: Entry, fates: Fates): boolean {
    if (standsBehind(hold)) return false;
    const { gone, holds } = fateOf(hold.process, fates);
    return holds.get(holdName(hold)) ?? (gone && !own.has(hold.process));
  }

  function replace(name: string, those: Iterable<NotedProcess>): void {
    notes.remove(name);
    for (const noted of those) notes.write(name, noted);
  }

  /** Notes go only when no record needs them, and all of a name at once: half of them would prove a living one dead. */
  function tidy(): void {
    for (const name of notes.some(TIDIED)) {
      if (own.has(name) || adopted.has(name)) continue;
      const those = notes.of(processOf(name)).get(name) ?? [];
      // Those of an earlier boot prove nothing and help nobody.
      const useless = those.every((noted) => noted.boot !== table.boot || isProvablyGone(noted, table));
      if (useless && !kept.mentions(processOf(name))) notes.remove(name);
    }
  }

  return {
    isOwn: (name) => own.has(name),
    standsBehind,
    introduce(name) {
      tidy();
      for (const noted of pids.values()) notes.write(name, noted);
    },
    adopt(hold) {
      tidy();
      // What this process made itself, its own notes stand for again.
      replace(holdName(hold), own.has(hold.process) ? [] : pids.values());
    },
    accept(names, holds) {
      for (const name of names) own.add(name);
      for (const hold of holds) {
        if (own.has(hold.process)) away.delete(holdName(hold));
        else remember(adopted, holdName(hold));
      }
    },
    handOff(hold) {
      replace(holdName(hold), [NOBODY]);
      adopted.delete(holdName(hold));
      if (own.has(hold.process)) remember(away, holdName(hold));
    },
    ended(hold) {
      if (adopted.size > 0 && adopted.delete(holdName(hold))) notes.remove(holdName(hold));
    },
    buryGone(state, now, fates) {
      const gone = new Set<Entry>();
      for (const holder of state.holders) if (isGone(holder, fates)) gone.add(holder);
      for (const waiter of state.waiters.slice(0, WAITERS_CHECKED)) {
        if (isGone(waiter, fates)) gone.add(waiter);
      }
      if (gone.size === 0) return state;
      const bury = <T extends Entry>(entry: T): T =>
        gone.has(entry) ? { ...entry, expiresAt: Math.min(entry.expiresAt, now) } : entry;
      return { ...state, holders: state.holders.map(bury), waiters: state.waiters.map(bury) };
    },
    record(pid) {
      if (pid === process.pid) return;
      const noted = note(pid, table);
      for (const name of [...own, ...adopted]) notes.write(name, noted);
      pids.set(pid, noted);
    },
    forget(pid) {
      if (pid === process.pid) return;
      for (const name of [...own, ...adopted]) notes.removeOne(name, pid);
      pids.delete(pid);
    },
    leave() {
      for (const name of own) for (const pid of pids.keys()) notes.removeOne(name, pid);
      // Without any, the process that made the hold would count again, and that one is gone.
      for (const name of adopted) replace(name, [NOBODY]);
      own.clear();
      adopted.clear();
    },
  };
}

/** The oldest go first. */
function remember(names: Set<string>, name: string): void {
  names.delete(name);
  names.add(name);
  const [oldest] = names;
  if (names.size > REMEMBERED && oldest !== undefined) names.delete(oldest);
}
