/**
 * The store's time: the machine's clock plus an offset fixed once per boot, in the database. All processes of one boot
 * read the same time, and setting the wall clock changes nothing. The first process after a boot takes the offset from the
 * wall clock, but never one that puts the time behind an earlier decision.
 *
 * Without a boot id (on all systems but Linux), time is the wall clock, and setting it moves expiries. The file records
 * that, too: a process that has only the other clock is refused, as each would end the other's leases early.
 */
import { systemClock } from '../../clock.js';
import { UnsupportedError } from '../../protocol/index.js';
import { immediately, patiently, type SqliteDatabase } from './database.js';
import { machineMs } from './machine-clock.js';

export interface Clocks {
  /** The same for all processes of the machine. */
  machineMs(): number;
  wallMs(): number;
}

const systemClocks: Clocks = { machineMs, wallMs: systemClock.wallMs };

/** Stored instead of a boot id. */
const WALL_CLOCK = 'wall clock';

/** The time in whole milliseconds. `boot` is null if unknown. */
export function storeTime(
  database: SqliteDatabase,
  boot: string | null,
  clocks: Clocks = systemClocks,
): () => number {
  const read = boot === null ? clocks.wallMs : clocks.machineMs;
  // Opening fails here if this process has no such clock.
  read();
  const name = boot ?? WALL_CLOCK;
  const offset = knownOffset(database, name) ?? patiently(database, () => fixOffset(database, name, clocks));
  return () => Math.floor(read()) + offset;
}

function knownOffset(database: SqliteDatabase, name: string): number | undefined {
  const row = database.prepare('SELECT offset_ms FROM holdfast_clocks WHERE boot = ?').get(name);
  return (row as { offset_ms: number } | undefined)?.offset_ms;
}

function fixOffset(database: SqliteDatabase, name: string, clocks: Clocks): number {
  return immediately(database, () => {
    const known = knownOffset(database, name);
    if (known !== undefined) return known;
    refuseOtherClock(database, name);
    const { floor } = database
      .prepare(
        `SELECT max(
          ifnull((SELECT max(decided_at) FROM holdfast_records), 0),
          ifnull((SELECT max(reached_ms) FROM holdfast_clocks), 0)
        ) AS floor`,
      )
      .get() as { floor: number };
    const now = Math.max(Math.floor(clocks.wallMs()), floor + 1);
    const offset = name === WALL_CLOCK ? 0 : now - Math.floor(clocks.machineMs());
    database.prepare('INSERT INTO holdfast_clocks VALUES (?, ?, ?)').run(name, offset, now);
    return offset;
  });
}

/** No file has both clocks: each is stored only if the other is not. */
function refuseOtherClock(database: SqliteDatabase, name: string): void {
  const other =
    name === WALL_CLOCK
      ? database.prepare('SELECT 1 FROM holdfast_clocks LIMIT 1').get()
      : database.prepare('SELECT 1 FROM holdfast_clocks WHERE boot = ?').get(WALL_CLOCK);
  if (other === undefined) return;
  throw new UnsupportedError(
    name === WALL_CLOCK
      ? "The processes that used this SQLite file use the machine's clock, and this one cannot: " +
          '/proc/sys/kernel/random/boot_id is not readable here. Make it readable, or use another file. Nothing was changed.'
      : "A process that could not read the machine's clock used this SQLite file with the wall clock: on another system, or " +
          'without /proc. Close all processes that use the file and delete it, or use another one. Nothing was changed.',
  );
}
