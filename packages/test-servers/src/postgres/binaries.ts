/**
 * The binaries of PostgreSQL: 15 is the system's, 18 comes from npm. npm packages contain no symbolic links, and many
 * installations do not run the package's script that makes them, so they are made here.
 */
import { execFileSync } from 'node:child_process';
import { accessSync, chmodSync, constants, existsSync, readFileSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { findNpmPostgres, findSystemPostgres } from '../find.js';
import { madeOnce } from '../folders.js';
import { need } from '../install.js';
import { hasCode } from '../system-error.js';
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

/** Another process may make the same link at the same time. */
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
    const path = join(native, target.replace(/^native\//, ''));
    if (!existsSync(path)) link(path, basename(source));
  }
}

function isAllowed(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch (error) {
    if (hasCode(error, 'EACCES', 'EROFS', 'EPERM', 'ENOENT')) return false;
    throw error;
  }
}

function makeExecutable(native: string): void {
  for (const name of ['initdb', 'postgres']) {
    const file = join(native, 'bin', name);
    if (!isAllowed(file, constants.X_OK)) chmodSync(file, 0o755);
  }
}

/** The checkout may be unreadable for the server's user, or not writable for the links. */
function isUsable(native: string, user: User | undefined): boolean {
  return reachableBy(user, join(native, 'bin')) && isAllowed(join(native, 'lib'), constants.W_OK);
}

function copyForAll(native: string, to: string): void {
  execFileSync('cp', ['-R', native, to]);
  execFileSync('chmod', ['-R', 'a+rX', to]);
}

async function npmBinaries(packageFolder: string, user: User | undefined): Promise<PostgresBinaries> {
  const installed = join(packageFolder, 'native');
  const native = isUsable(installed, user)
    ? installed
    : await madeOnce('native', (aside) => copyForAll(installed, aside));
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
