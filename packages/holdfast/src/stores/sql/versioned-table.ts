/**
 * A table of Holdfast's own: one row per key, with its state as JSON, a version that is new with every write, and the
 * time from which on it may be deleted. A database adds the statements, each of which returns its time, too.
 */
import { expendableAt, type State } from '../../protocol/index.js';
import type { Found } from '../compare-and-swap/register.js';
import { newVersion, stateIn, textOf } from './row-state.js';
import type { SqlTable, Timed } from './sql-table.js';

/** A row as it is written. */
export interface VersionedRow {
  readonly version: string;
  /** JSON in ASCII letters. */
  readonly state: string;
  /** In milliseconds. */
  readonly deleteAfter: number;
}

/** A row as it is read. */
export interface FoundRow {
  readonly key: string;
  readonly version: string;
  readonly state: string;
}

export interface VersionedRows extends Pick<SqlTable<string>, 'time' | 'cleanUp' | 'probe'> {
  select(key: string): Promise<Timed<FoundRow | null>>;
  /** Where there is no row, or one that may be deleted. Resolves with whether it was written. */
  insert(key: string, row: VersionedRow): Promise<Timed<boolean>>;
  /** Where the row has this version. Resolves with whether it was written. */
  update(key: string, row: VersionedRow, version: string): Promise<Timed<boolean>>;
  /** As `SqlTable.page`. */
  page(prefix: string, after: string | null, rows: number): Promise<Timed<readonly FoundRow[]>>;
}

const ABSENT: Found<string> = { state: null, version: '', lateMs: 0 };

export function versionedTable(rows: VersionedRows): SqlTable<string> {
  return {
    absent: ABSENT,
    async read(key) {
      const { value, atMs } = await rows.select(key);
      if (!value) return { value: ABSENT, atMs };
      return { value: { state: stateIn(value.state, key), version: value.version, lateMs: 0 }, atMs };
    },
    async replace(key, next, seen) {
      const row = rowOf(next);
      const { value: isWritten, atMs } = await (seen.version === ABSENT.version
        ? rows.insert(key, row)
        : rows.update(key, row, seen.version));
      if (!isWritten) return { value: { kind: 'changed', found: null }, atMs };
      return { value: { kind: 'written', version: row.version, lateMs: 0 }, atMs };
    },
    async page(prefix, after, count) {
      const { value, atMs } = await rows.page(prefix, after, count);
      return { value: value.map(({ key, state }) => ({ key, state: stateIn(state, key) })), atMs };
    },
    time: () => rows.time(),
    cleanUp: async (count) => (await rows.cleanUp?.(count)) ?? 0,
    probe: () => rows.probe(),
  };
}

function rowOf(state: State): VersionedRow {
  return { version: newVersion(), state: textOf(state), deleteAfter: expendableAt(state) };
}
