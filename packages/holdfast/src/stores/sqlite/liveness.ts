/**
 * Finds holders and waiters that are provably gone. The database has a note of every process that claims, with its process
 * id and start time, and of every command that it runs under its locks. A hold is gone when all processes noted for it are
 * gone. A hold without notes is never gone: the ttl decides.
 *
 * A handed-off hold has notes of its own, which replace those of the process that made it: first a note that proves
 * nothing, until it is adopted, then those of the process that renews it.
 */
import type { HoldId, State } from '../../protocol/index.js';
import { groupedBy } from '../clients/grouped.js';
import type { SqliteDatabase } from './database.js';
import { isProvablyGone, type NotedProcess, note, type ProcessTable } from './process-table.js';
import type { Records } from './records.js';

/** Whether a process is gone, and the same for those of its holds that have notes of their own. */
interface Finding {
  readonly gone: boolean;
  readonly holds: ReadonlyMap<string, boolean>;
}

/** The findings of one transaction, per process. */
export type Findings = Map<string, Finding>;

export const ALIVE: Finding = { gone: false, holds: new Map() };

type Entry = { readonly hold: HoldId; readonly expiresAt: number };

/** The note of a hold that was handed off and not adopted yet: it proves nothing, so the ttl decides. */
const NOBODY: NotedProcess = { pid: 0, started: null, boot: null, namespace: null };

/** Only the first waiters are checked; the others when they move up. */
const WAITERS_CHECKED = 8;
/** How many notes a new process checks, to delete those of dead processes. */
const NOTES_CHECKED = 4;
/** Above this number of names, the oldest are forgotten if possible: every `createLocks` adds one and removes none. */
const OWN_KEPT = 256;
/** More than one per new name, because some may still be needed. */
const OWN_CHECKED = 2;
/** The most handed-off holds that are remembered. A forgotten one counts as alive until its ttl. */
const REMEMBERED = 4_096;

export type Liveness = ReturnType<typeof liveness>;

/** All methods but `isOwn`, `isResponsible` and `accept` are called inside a transaction. */
export function liveness(database: SqliteDatabase, table: ProcessTable, kept: Records) {
  const notes = processNotes(database);
  const own = new Set<string>();
  /** Names of holds that this process made and handed off, and of holds that it adopted. */
  const away = new Set<string>();
  const adopted = new Set<string>();
  const pids = new Map<number, NotedProcess>([[process.pid, note(process.pid, table)]]);

  const areGone = (those: readonly NotedProcess[]): boolean =>
    those.length > 0 && those.every((noted) => isProvablyGone(noted, table));

  /** Whether this process made the hold and never gave it away, or adopted it. */
  function isResponsible(hold: HoldId): boolean {
    if (own.has(hold.process)) return away.size === 0 || !away.has(holdName(hold));
    return adopted.size > 0 && adopted.has(holdName(hold));
  }

  function findingOf(name: string, findings: Findings): Finding {
    let finding = findings.get(name);
    if (!finding) {
      const found = notes.of(name);
      const holds = new Map<string, boolean>();
      for (const [noted, those] of found) if (noted !== name) holds.set(noted, areGone(those));
      finding = { gone: areGone(found.get(name) ?? []), holds };
      findings.set(name, finding);
    }
    return finding;
  }

  function isGone({ hold }: Entry, findings: Findings): boolean {
    if (isResponsible(hold)) return false;
    const { gone, holds } = findingOf(hold.process, findings);
    return holds.get(holdName(hold)) ?? (gone && !own.has(hold.process));
  }

  function replace(name: string, those: Iterable<NotedProcess>): void {
    notes.remove(name);
    for (const noted of those) notes.write(name, noted);
  }

  /** Deletes notes that no record needs, all of a name at once: half of them would prove a living process dead. */
  function tidy(): void {
    for (const name of notes.some(NOTES_CHECKED)) {
      if (own.has(name) || adopted.has(name)) continue;
      const those = notes.of(processOf(name)).get(name) ?? [];
      // Notes of an earlier boot prove nothing.
      const useless = those.every((noted) => noted.boot !== table.boot || isProvablyGone(noted, table));
      if (useless && !kept.mentions(processOf(name))) notes.remove(name);
    }
  }

  /** Forgets old names of this store. A name that claims again gets a new note. */
  function tidyOwn(): void {
    if (own.size < OWN_KEPT) return;
    for (const name of [...own].slice(0, OWN_CHECKED)) {
      own.delete(name);
      if (kept.mentions(name)) own.add(name);
      else notes.remove(name);
    }
  }

  return {
    isOwn: (process: string) => own.has(process),
    isResponsible,
    /** Notes a process that claims for the first time. */
    introduce(name: string): void {
      tidy();
      tidyOwn();
      for (const noted of pids.values()) notes.write(name, noted);
    },
    /** Makes this process responsible for the hold from now on. */
    adopt(hold: HoldId): void {
      tidy();
      // The notes of this process count again for a hold that it made itself.
      replace(holdName(hold), own.has(hold.process) ? [] : pids.values());
    },
    /** Remembers these introductions and adoptions after their commit. */
    accept(names: Iterable<string>, holds: Iterable<HoldId>): void {
      for (const name of names) own.add(name);
      for (const hold of holds) {
        if (own.has(hold.process)) away.delete(holdName(hold));
        else remember(adopted, holdName(hold));
      }
    },
    /** Makes no process responsible from now on: only the ttl ends the hold. */
    handOff(hold: HoldId): void {
      replace(holdName(hold), [NOBODY]);
      adopted.delete(holdName(hold));
      if (own.has(hold.process)) remember(away, holdName(hold));
    },
    /** Removes the notes of an ended hold. */
    ended(hold: HoldId): void {
      if (adopted.size > 0 && adopted.delete(holdName(hold))) notes.remove(holdName(hold));
    },
    /** The state with everything provably gone expired at `now`. */
    expireGone(state: State, now: number, findings: Findings): State {
      const checked: readonly Entry[] = [...state.holders, ...state.waiters.slice(0, WAITERS_CHECKED)];
      const gone = new Set(checked.filter((entry) => isGone(entry, findings)));
      if (gone.size === 0) return state;
      const expire = <T extends Entry>(entry: T): T =>
        gone.has(entry) ? { ...entry, expiresAt: Math.min(entry.expiresAt, now) } : entry;
      return { ...state, holders: state.holders.map(expire), waiters: state.waiters.map(expire) };
    },
    /** Notes another process id for all present and later holds of this store. */
    record(pid: number): void {
      if (pid === process.pid) return;
      const noted = note(pid, table);
      for (const name of [...own, ...adopted]) notes.write(name, noted);
      pids.set(pid, noted);
    },
    forget(pid: number): void {
      if (pid === process.pid) return;
      for (const name of [...own, ...adopted]) notes.removeOne(name, pid);
      pids.delete(pid);
    },
    /** Removes the notes of this store. */
    leave(): void {
      for (const name of own) for (const pid of pids.keys()) notes.removeOne(name, pid);
      // Without a note, the process that made the hold would count again, and it may be gone.
      for (const name of adopted) replace(name, [NOBODY]);
      own.clear();
      adopted.clear();
    },
  };
}

/** Adds a name, and drops the oldest if there are too many. */
function remember(names: Set<string>, name: string): void {
  names.delete(name);
  names.add(name);
  const [oldest] = names;
  if (names.size > REMEMBERED && oldest !== undefined) names.delete(oldest);
}

function holdName({ process, number }: HoldId): string {
  return `${process}/${number}`;
}

function processOf(name: string): string {
  const slash = name.lastIndexOf('/');
  return slash === -1 ? name : name.slice(0, slash);
}

/**
 * The table of notes. A note is for all holds of a process, under the process's name, or for one handed-off hold, under the
 * hold's name. No random process id contains a slash.
 */
function processNotes(database: SqliteDatabase) {
  const insert = database.prepare('INSERT OR REPLACE INTO holdfast_processes VALUES (?, ?, ?, ?, ?)');
  const columns = 'SELECT process, pid, started, boot, namespace FROM holdfast_processes';
  // In ASCII, '0' follows the slash.
  const select = database.prepare(
    `${columns} WHERE process = ? UNION ALL ${columns} WHERE process > ? AND process < ?`,
  );
  const removeOne = database.prepare('DELETE FROM holdfast_processes WHERE process = ? AND pid = ?');
  const remove = database.prepare('DELETE FROM holdfast_processes WHERE process = ?');
  const some = database.prepare('SELECT DISTINCT process FROM holdfast_processes ORDER BY random() LIMIT ?');

  return {
    write(name: string, { pid, started, boot, namespace }: NotedProcess): void {
      insert.run(name, pid, started, boot, namespace);
    },
    remove: (name: string) => void remove.run(name),
    removeOne: (name: string, pid: number) => void removeOne.run(name, pid),
    /** The notes of a process, by name: for all its holds, and for single holds. */
    of(process: string): ReadonlyMap<string, readonly NotedProcess[]> {
      const rows = select.all(process, `${process}/`, `${process}0`);
      return groupedBy(rows as (NotedProcess & { readonly process: string })[], (row) => row.process);
    },
    /** Some names, at random. */
    some: (count: number) => (some.all(count) as { process: string }[]).map(({ process }) => process),
  };
}
