/**
 * The tables and their version. All names start with `holdfast_`, so that the user's database may hold other tables, too.
 * An unknown version is refused before anything is written.
 */
import { UnsupportedError } from '../../protocol/index.js';
import { immediately, type SqliteDatabase } from './database.js';

const SCHEMA_VERSION = 1;

const TABLES = `
CREATE TABLE holdfast_schema (version INTEGER NOT NULL);
INSERT INTO holdfast_schema VALUES (${SCHEMA_VERSION});

CREATE TABLE holdfast_records (
  key TEXT PRIMARY KEY,
  state TEXT NOT NULL,
  decided_at INTEGER NOT NULL,
  expendable_at INTEGER NOT NULL,
  in_use INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX holdfast_expendable ON holdfast_records (expendable_at);
CREATE INDEX holdfast_in_use ON holdfast_records (key) WHERE in_use = 1;

CREATE TABLE holdfast_clocks (
  boot TEXT PRIMARY KEY,
  offset_ms INTEGER NOT NULL,
  reached_ms INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE holdfast_processes (
  process TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started TEXT,
  boot TEXT,
  namespace TEXT,
  PRIMARY KEY (process, pid)
) WITHOUT ROWID;
`;

/** Whether the tables exist. Only reads. Throws if they have another version, or are not ours. */
export function hasSchema(database: SqliteDatabase, where: string): boolean {
  // One query: another process may be creating them.
  const names = database
    .prepare(
      `SELECT name FROM sqlite_master
       WHERE name IN ('holdfast_schema', 'holdfast_records', 'holdfast_clocks', 'holdfast_processes')`,
    )
    .all() as { name: string }[];
  const [foreign] = names;
  if (!foreign) return false;
  if (!names.some(({ name }) => name === 'holdfast_schema')) {
    throw new UnsupportedError(
      `${where} has a table "${foreign.name}" that this library did not make. Use another file. Nothing was changed.`,
    );
  }
  const row = database.prepare('SELECT version FROM holdfast_schema').get() as
    | { version: unknown }
    | undefined;
  if (row?.version === SCHEMA_VERSION) return true;
  throw new UnsupportedError(
    `${where} has tables of version ${String(row?.version)}, and this library knows version ${SCHEMA_VERSION}. ` +
      'Another version of Holdfast made it: use that version, or another file. Nothing was changed.',
  );
}

export function ensureSchema(database: SqliteDatabase, where: string): void {
  if (hasSchema(database, where)) return;
  immediately(database, () => {
    // Another process may have been faster.
    if (!hasSchema(database, where)) database.exec(TABLES);
  });
}
