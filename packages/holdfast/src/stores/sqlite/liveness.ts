/**
 * Which holders and waiters are provably gone. Every process that claims is noted in the database with its process id
 * and start time; a command that it runs under its locks may be noted too. A hold counts as gone when all that was
 * noted for it is. One that was never noted is never gone: the ttl decides.
 */
import type { HoldId, State } from '../../protocol/index.js';
import type { SqliteDatabase } from './database.js';
import { isProvablyGone, type NotedProcess, note, type ProcessTable } from './process-table.js';
import type { Records } from './records.js';

/** What one transaction found out: process → whether it is gone. */
export type Fates = Map<string, boolean>;

/** All but `isOwn` and `accept` belong inside a transaction. */
export interface Liveness {
  isOwn(process: string): boolean;
  /** Notes a process that claims or renews for the first time. */
  introduce(process: string): void;
  /** The transaction that introduced them is through. */
  accept(processes: Iterable<string>): void;
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

export function liveness(database: SqliteDatabase, table: ProcessTable, kept: Records): Liveness {
  const insert = database.prepare('INSERT OR REPLACE INTO holdfast_processes VALUES (?, ?, ?, ?, ?)');
  const select = database.prepare(
    'SELECT pid, started, boot, namespace FROM holdfast_processes WHERE process = ?',
  );
  const removeOne = database.prepare('DELETE FROM holdfast_processes WHERE process = ? AND pid = ?');
  const removeAll = database.prepare('DELETE FROM holdfast_processes WHERE process = ?');
  const some = database.prepare('SELECT DISTINCT process FROM holdfast_processes ORDER BY random() LIMIT ?');
  const own = new Set<string>();
  const pids = new Map<number, NotedProcess>([[process.pid, note(process.pid, table)]]);

  const notesOf = (name: string): NotedProcess[] => select.all(name) as NotedProcess[];

  function write(name: string, { pid, started, boot, namespace }: NotedProcess): void {
    insert.run(name, pid, started, boot, namespace);
  }

  function isGone({ hold }: Entry, fates: Fates): boolean {
    if (own.has(hold.process)) return false;
    let gone = fates.get(hold.process);
    if (gone === undefined) {
      const notes = notesOf(hold.process);
      gone = notes.length > 0 && notes.every((noted) => isProvablyGone(noted, table));
      fates.set(hold.process, gone);
    }
    return gone;
  }

  /** Notes go only when no record needs them, and all of a process at once: half of them would prove a living one dead. */
  function tidy(): void {
    for (const { process: name } of some.all(TIDIED) as { process: string }[]) {
      if (own.has(name)) continue;
      // Those of an earlier boot prove nothing and help nobody.
      const useless = notesOf(name).every(
        (noted) => noted.boot !== table.boot || isProvablyGone(noted, table),
      );
      if (useless && !kept.mentions(name)) removeAll.run(name);
    }
  }

  return {
    isOwn: (name) => own.has(name),
    introduce(name) {
      tidy();
      for (const noted of pids.values()) write(name, noted);
    },
    accept(names) {
      for (const name of names) own.add(name);
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
      for (const name of own) write(name, noted);
      pids.set(pid, noted);
    },
    forget(pid) {
      if (pid === process.pid) return;
      for (const name of own) removeOne.run(name, pid);
      pids.delete(pid);
    },
    leave() {
      for (const name of own) for (const pid of pids.keys()) removeOne.run(name, pid);
      own.clear();
    },
  };
}
