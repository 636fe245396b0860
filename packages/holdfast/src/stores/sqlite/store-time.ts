/**
 * The store's time: the machine's monotonic clock plus an offset fixed once a boot, in the database. All processes of
 * one boot read the same time, and a wall clock set by hand changes nothing. The first to open the file after a boot
 * takes the offset from the wall clock, but never so that time falls behind anything decided before.
 *
 * Where the system names no boot (anything but Linux), the wall clock is all there is, and setting it moves expiries.
 */
import { machineMonotonicMs, systemClock } from '../../clock.js';
import { immediately, patiently, type SqliteDatabase } from './database.js';

export interface Clocks {
  monotonicMs(): number;
  wallMs(): number;
}

const machine: Clocks = { monotonicMs: machineMonotonicMs, wallMs: systemClock.wallMs };

/** Whole milliseconds. `boot` is null where it cannot be told. */
export function storeTime(
  database: SqliteDatabase,
  boot: string | null,
  clocks: Clocks = machine,
): () => number {
  if (boot === null) return () => Math.floor(clocks.wallMs());
  const offset = knownOffset(database, boot) ?? patiently(database, () => fixOffset(database, boot, clocks));
  return () => Math.floor(clocks.monotonicMs()) + offset;
}

function knownOffset(database: SqliteDatabase, boot: string): number | undefined {
  const row = database.prepare('SELECT offset_ms FROM holdfast_clocks WHERE boot = ?').get(boot);
  return (row as { offset_ms: number } | undefined)?.offset_ms;
}

function fixOffset(database: SqliteDatabase, boot: string, clocks: Clocks): number {
  return immediately(database, () => {
    const known = knownOffset(database, boot);
    if (known !== undefined) return known;
    const { floor } = database
      .prepare(
        `SELECT max(
          ifnull((SELECT max(decided_at) FROM holdfast_records), 0),
          ifnull((SELECT max(reached_ms) FROM holdfast_clocks), 0)
        ) AS floor`,
      )
      .get() as { floor: number };
    const now = Math.max(Math.floor(clocks.wallMs()), floor + 1);
    const offset = now - Math.floor(clocks.monotonicMs());
    database.prepare('INSERT INTO holdfast_clocks VALUES (?, ?, ?)').run(boot, offset, now);
    return offset;
  });
}
