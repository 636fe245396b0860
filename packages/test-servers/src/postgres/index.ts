/**
 * A private PostgreSQL on loopback, as superuser postgres without a password. Its backends are paused and killed with it.
 * A server named in HOLDFAST_TEST_POSTGRES_URL is used as it is; databases made in it are dropped again.
 */
import { join } from 'node:path';
import { borrowed, givenUrl } from '../borrowed.js';
import { type Controls, type Plan, supervise } from '../supervise.js';
import { giveTo, unprivileged } from '../unprivileged.js';
import { type PostgresBinaries, type PostgresVersion, postgresBinaries } from './binaries.js';
import { makeDataFolder } from './data.js';
import { createDatabase, dropDatabase, queryOnce } from './databases.js';

export interface PostgresServer extends Controls {
  readonly url: string;
  /** Such as `15.10`. */
  readonly version: string;
  /** Makes an empty database. Returns its URL. */
  createDatabase(): Promise<string>;
}

export interface PostgresOptions {
  readonly version?: PostgresVersion;
  /** Off by default: no test cuts the power. On in benchmarks. */
  readonly fsync?: boolean;
  /** Lines of postgresql.conf: `{ max_connections: '20' }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Further variables of the process, such as a faked clock. */
  readonly env?: Readonly<Record<string, string>>;
  /** A private server even if a variable names one: for tests that stop, pause or kill it. Any option means that too. */
  readonly own?: boolean;
}

const urlAt = (port: number): string => `postgres://postgres@127.0.0.1:${port}/postgres`;

function plan(binaries: PostgresBinaries, options: PostgresOptions): Plan {
  const user = unprivileged();
  const durable = options.fsync === true ? {} : { fsync: 'off', full_page_writes: 'off' };
  const settings = Object.entries({
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    ...durable,
    ...options.settings,
  }).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const data = (folder: string): string => join(folder, 'data');
  return {
    name: 'postgres',
    gentle: 'SIGINT',
    prepare: async (folder) => {
      giveTo(user, folder);
      await makeDataFolder(binaries, user, data(folder));
    },
    launch: (port, folder) => {
      const args = ['-D', data(folder), '-p', String(port), ...settings];
      return { command: join(binaries.folder, 'postgres'), args, folder, user, env: options.env ?? {} };
    },
    answers: async (port, _pid, folder) =>
      (await queryOnce(urlAt(port), 'SHOW data_directory')) === data(folder),
  };
}

async function startPrivate(options: PostgresOptions): Promise<PostgresServer> {
  const binaries = await postgresBinaries(options.version, unprivileged());
  const controls = await supervise(plan(binaries, options));
  const url = urlAt(controls.port);
  const version = (await queryOnce(url, 'SHOW server_version')).split(' ')[0] ?? '';
  return Object.assign(controls, { url, version, createDatabase: () => createDatabase(url) });
}

async function useGiven(given: string): Promise<PostgresServer> {
  const made: string[] = [];
  const server = borrowed('postgres', given);
  return Object.assign(server, {
    version: (await queryOnce(given, 'SHOW server_version')).split(' ')[0] ?? '',
    createDatabase: async () => {
      const url = await createDatabase(given);
      made.push(url);
      return url;
    },
    stop: async () => {
      for (const url of made.splice(0)) await dropDatabase(given, url);
    },
  });
}

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const given = givenUrl('postgres');
  if (given === undefined || Object.keys(options).length > 0) return startPrivate(options);
  return useGiven(given);
}
