/**
 * Which PostgreSQL: 15 is the system's, 18 is npm's. npm packs no symbolic links, and its package makes them in a script
 * that many installations do not run, so they are made here.
 */
import { chmodSync, cpSync, existsSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { findNpmPostgres, findSystemPostgres } from '../find.js';
import { sharedFolder } from '../folders.js';
import { need } from '../install.js';
import { reachableBy, type User } from '../unprivileged.js';

export type PostgresVersion = '15' | '18';

export interface PostgresBinaries {
  readonly version: PostgresVersion;
  /** The folder of `initdb` and `postgres`. */
  readonly folder: string;
}

interface Link {
  readonly source: string;
  readonly target: string;
}

export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}

/** Another process may make the same link at the same moment. */
function link(at: string, to: string): void {
  try {
    symlinkSync(to, at);
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
  }
}

function makeLinks(native: string): void {
  const list = join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, 'utf8')) as readonly Link[];
  for (const { source, target } of links) {
    const path = join(dirname(native), target);
    if (!existsSync(path)) link(path, basename(source));
  }
}

function makeExecutable(native: string): void {
  for (const name of ['initdb', 'postgres', 'pg_ctl']) {
    const file = join(native, 'bin', name);
    if (existsSync(file)) chmodSync(file, 0o755);
  }
}

/** Makes a folder at once, for all processes of the run: built aside, then renamed; who is late uses the first. */
export async function madeOnce(path: string, make: (aside: string) => void | Promise<void>): Promise<string> {
  if (existsSync(path)) return path;
  const aside = `${path}.${process.pid}`;
  await make(aside);
  try {
    renameSync(aside, path);
  } catch (error) {
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
    rmSync(aside, { recursive: true, force: true });
  }
  return path;
}

async function npmBinaries(packageFolder: string, user: User | undefined): Promise<PostgresBinaries> {
  let native = join(packageFolder, 'native');
  if (!reachableBy(user, native)) {
    native = await madeOnce(join(sharedFolder(), 'native'), (aside) =>
      cpSync(native, aside, { recursive: true }),
    );
  }
  makeLinks(native);
  makeExecutable(native);
  return { version: '18', folder: join(native, 'bin') };
}

export async function postgresBinaries(
  version: PostgresVersion | undefined,
  user: User | undefined,
): Promise<PostgresBinaries> {
  if (version === '18') return npmBinaries(await need('postgres-18'), user);
  if (version === '15') return { version: '15', folder: await need('postgres-15') };
  await need('postgres');
  const system = findSystemPostgres();
  if (system !== undefined) return { version: '15', folder: system };
  const npm = findNpmPostgres();
  if (npm === undefined) throw new Error('PostgreSQL was here a moment ago');
  return npmBinaries(npm, user);
}
