/**
 * The table of noted processes. A note stands for all holds that a process makes, under the process's own name; or for
 * one hold that changed hands, under a name of its own. No random process id has a slash in it.
 */
import type { HoldId } from '../../protocol/index.js';
import type { SqliteDatabase } from './database.js';
import type { NotedProcess } from './process-table.js';

export interface ProcessNotes {
  write(name: string, noted: NotedProcess): void;
  remove(name: string): void;
  removeOne(name: string, pid: number): void;
  /** Of a process, by name: those for all its holds, and those for single ones. */
  of(process: string): ReadonlyMap<string, readonly NotedProcess[]>;
  /** Some names, at random. */
  some(count: number): readonly string[];
}

/** The note of a hold that was handed off and not adopted yet: proves nothing, so the ttl decides. */
export const NOBODY: NotedProcess = { pid: 0, started: null, boot: null, namespace: null };

export function holdName({ process, number }: HoldId): string {
  return `${process}/${number}`;
}

export function processOf(name: string): string {
  const slash = name.lastIndexOf('/');
  return slash === -1 ? name : name.slice(0, slash);
}

export function processNotes(database: SqliteDatabase): ProcessNotes {
  const insert = database.prepare('INSERT OR REPLACE INTO holdfast_processes VALUES (?, ?, ?, ?, ?)');
  const columns = 'SELECT process, pid, started, boot, namespace FROM holdfast_processes';
  // '0' is what follows the slash.
  const select = database.prepare(
    `${columns} WHERE process = ? UNION ALL ${columns} WHERE process > ? AND process < ?`,
  );
  const removeOne = database.prepare('DELETE FROM holdfast_processes WHERE process = ? AND pid = ?');
  const remove = database.prepare('DELETE FROM holdfast_processes WHERE process = ?');
  const some = database.prepare('SELECT DISTINCT process FROM holdfast_processes ORDER BY random() LIMIT ?');

  return {
    write(name, { pid, started, boot, namespace }) {
      insert.run(name, pid, started, boot, namespace);
    },
    remove(name) {
      remove.run(name);
    },
    removeOne(name, pid) {
      removeOne.run(name, pid);
    },
    of(process) {
      const rows = select.all(process, `${process}/`, `${process}0`) as (NotedProcess & {
        readonly process: string;
      })[];
      const found = new Map<string, NotedProcess[]>();
      for (const row of rows) {
        const those = found.get(row.process) ?? [];
        those.push(row);
        found.set(row.process, those);
      }
      return found;
    },
    some: (count) => (some.all(count) as { process: string }[]).map(({ process }) => process),
  };
}
