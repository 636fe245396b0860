/**
 * A private MariaDB on loopback, as user root without a password, for what is said about MySQL and MariaDB. A server named
 * in HOLDFAST_TEST_MYSQL_URL is used as it is; databases made in it are dropped again.
 */
import { execFile } from 'node:child_process';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import mysql, { type RowDataPacket } from 'mysql2/promise';
import { borrowed, givenUrl } from './borrowed.js';
import { randomName } from './clock.js';
import { findOnPath } from './find.js';
import { need } from './install.js';
import { type Controls, type Plan, supervise } from './supervise.js';

export interface MariadbServer extends Controls {
  readonly url: string;
  /** Such as `10.11.6`. */
  version(): Promise<string>;
  /** Makes an empty database. Returns its URL. */
  createDatabase(): Promise<string>;
}

export interface MariadbOptions {
  /** Off by default: no test cuts the power. On in benchmarks. */
  readonly fsync?: boolean;
  /** Options of the server: `{ 'read-only': 'ON' }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** A private server even if a variable names one: for tests that stop, pause or kill it. Any option means that too. */
  readonly own?: boolean;
}

const INSTALL_MS_MAX = 120_000;
const USER = 'root';
const urlAt = (port: number): string => `mysql://${USER}@127.0.0.1:${port}/mysql`;

async function query(url: string, text: string): Promise<readonly RowDataPacket[]> {
  const connection = await mysql.createConnection({ uri: url, connectTimeout: 2_000 });
  try {
    const [rows] = await connection.query<RowDataPacket[]>(text);
    return rows;
  } finally {
    connection.destroy();
  }
}

/** The tables of the system: the server does not start without them. */
async function makeDataFolder(binary: string, data: string): Promise<void> {
  const beside = join(dirname(binary), 'mariadb-install-db');
  const script = findOnPath('mariadb-install-db') ?? beside;
  const args = [
    '--no-defaults',
    `--datadir=${data}`,
    // Temporary tables of several that start at once have the same names.
    `--tmpdir=${dirname(data)}`,
    `--user=${userInfo().username}`,
    '--auth-root-authentication-method=normal',
    '--skip-test-db',
    '--skip-name-resolve',
  ];
  await promisify(execFile)(script, args, { timeout: INSTALL_MS_MAX, maxBuffer: 1 << 24 });
}

function plan(binary: string, { fsync = false, settings = {} }: MariadbOptions): Plan {
  const data = (folder: string): string => join(folder, 'data');
  return {
    name: 'mariadb',
    gentle: 'SIGTERM',
    prepare: (folder) => makeDataFolder(binary, data(folder)),
    launch: (port, folder) => {
      const args = [
        '--no-defaults',
        `--datadir=${data(folder)}`,
        `--tmpdir=${folder}`,
        `--user=${userInfo().username}`,
        `--port=${port}`,
        '--bind-address=127.0.0.1',
        `--socket=${join(folder, 'm.sock')}`,
        `--pid-file=${join(folder, 'm.pid')}`,
        '--skip-name-resolve',
        // Written at every commit, so that a killed server forgets nothing; also flushed to the disk with `fsync`.
        `--innodb-flush-log-at-trx-commit=${fsync ? 1 : 2}`,
        ...Object.entries(settings).map(([name, value]) => `--${name}=${value}`),
      ];
      return { command: binary, args, folder };
    },
    answers: async (port, _pid, folder) => {
      const [row] = await query(urlAt(port), 'SELECT @@datadir AS folder');
      return String(row?.folder).startsWith(data(folder));
    },
  };
}

async function versionOf(url: string): Promise<string> {
  const [row] = await query(url, 'SELECT VERSION() AS version');
  return String(row?.version).split('-')[0] ?? 'unknown';
}

async function createDatabase(url: string): Promise<string> {
  const name = `holdfast_${randomName()}`;
  await query(url, `CREATE DATABASE \`${name}\``);
  return Object.assign(new URL(url), { pathname: `/${name}` }).href;
}

async function useGiven(given: string): Promise<MariadbServer> {
  const made: string[] = [];
  return Object.assign(borrowed('mariadb', given), {
    version: () => versionOf(given),
    createDatabase: async () => {
      const url = await createDatabase(given);
      made.push(url);
      return url;
    },
    stop: async () => {
      for (const url of made.splice(0)) {
        await query(given, `DROP DATABASE \`${new URL(url).pathname.slice(1)}\``);
      }
    },
  });
}

export async function startMariadb(options: MariadbOptions = {}): Promise<MariadbServer> {
  const given = Object.keys(options).length > 0 ? undefined : givenUrl('mariadb');
  if (given !== undefined) return useGiven(given);
  const controls = await supervise(plan(await need('mariadb'), options));
  const url = urlAt(controls.port);
  return Object.assign(controls, {
    url,
    version: () => versionOf(url),
    createDatabase: () => createDatabase(url),
  });
}
