/** Each store that can run there on Node 20, 22 and 24, Bun and Deno, from the packed library and a client of each store. */
import { join } from 'node:path';
import { available, type ServerName } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PageServers } from '../repository/page-servers.js';
import { run } from '../repository/shell.js';
import { root } from '../repository/tree.js';
import { Projects } from './projects.js';
import { nodeCommand, OTHER_NODES, RUNTIMES } from './runtime.js';

interface Case {
  readonly server?: ServerName;
  /** The client, by which `openStore` makes the store. */
  readonly client?: string;
  /** For the servers of the documents: they give a block the variables that it names. */
  readonly names: string;
  readonly needsMigration?: boolean;
  url(env: Readonly<Record<string, string>>, folder: string): string;
}

const STORES: Readonly<Record<string, Case>> = {
  memory: { names: '', url: () => 'memory:' },
  sqlite: {
    names: '',
    client: '@photostructure/sqlite',
    url: (_, folder) => `sqlite:${join(folder, 'locks.db')}`,
  },
  'redis, ioredis': {
    server: 'redis',
    client: 'ioredis',
    names: 'REDIS_URL',
    url: (env) => env.REDIS_URL ?? '',
  },
  'redis, redis': { server: 'redis', client: 'redis', names: 'REDIS_URL', url: (env) => env.REDIS_URL ?? '' },
  'postgres, pg': {
    server: 'postgres',
    client: 'pg',
    names: 'DATABASE_URL',
    url: (env) => env.DATABASE_URL ?? '',
  },
  'postgres, postgres': {
    server: 'postgres',
    client: 'postgres',
    names: 'DATABASE_URL',
    url: (env) => env.DATABASE_URL ?? '',
  },
  mysql: {
    server: 'mariadb',
    client: 'mysql2',
    names: 'MYSQL_URL',
    needsMigration: true,
    url: (env) => env.MYSQL_URL ?? '',
  },
  dynamodb: {
    server: 'dynamodb',
    client: '@aws-sdk/client-dynamodb',
    names: '@aws-sdk/client-dynamodb',
    url: () => 'dynamodb:///',
  },
  firestore: {
    server: 'firestore',
    client: '@google-cloud/firestore',
    names: '@google-cloud/firestore',
    url: () => 'firestore://my-project/locks',
  },
  nats: {
    server: 'nats',
    client: '@nats-io/transport-node',
    names: 'NATS_URL',
    needsMigration: true,
    url: (env) => `${env.NATS_URL}/locks`,
  },
  etcd: {
    server: 'etcd',
    names: 'ETCD_URL',
    url: (env) => `etcd://${new URL(env.ETCD_URL ?? '').host}/locks`,
  },
  http: { names: 'HOLDFAST_URL', url: (env) => env.HOLDFAST_URL ?? '' },
};

/** A waiter is granted what the holder releases, with a higher token, and the process ends by itself. */
const PROGRAM = `import { createLocks, openStore } from 'holdfast';
const locks = createLocks(await openStore(process.env.STORE), { ttl: '20s' });
const first = await locks.acquire(process.env.KEY, { wait: '30s' });
const others = createLocks(await openStore(process.env.STORE), { ttl: '20s' });
const shared = process.env.STORE !== 'memory:';
console.log(shared ? await others.tryAcquire(process.env.KEY) : null);
const waiting = (shared ? others : locks).acquire(process.env.KEY, { wait: '60s' });
await first.release();
const second = await waiting;
console.log(second.token > first.token, second.held);
await second.release();
await locks.close();
await others.close();
if (process.env.EXIT === 'yes') process.exit();
`;

const servers = new PageServers();
const projects = new Projects();
beforeAll(() => projects.pack());
afterAll(async () => {
  await servers.stop();
  projects.remove();
}, 60_000);

const runtimes: readonly (readonly [string, () => Promise<readonly string[]> | readonly string[]])[] = [
  [`Node ${process.versions.node.split('.')[0]}`, () => RUNTIMES.node],
  ...Object.entries(OTHER_NODES).map(([name, version]) => [name, () => nodeCommand(version)] as const),
  ['Bun', () => RUNTIMES.bun],
  ['Deno', () => RUNTIMES.deno],
];

describe.each(Object.entries(STORES))('%s', (name, { server, client, names, needsMigration, url }) => {
  it.runIf(server === undefined || available(server)).each(runtimes)(
    'on %s a lock goes from its holder to a waiter',
    async (runtime, command) => {
      const [program = '', ...args] = await command();
      const folder = await projects.make({ 'program.mjs': PROGRAM }, client === undefined ? [] : [client]);
      const env = await servers.envFor(names);
      const store = url(env, folder);
      if (needsMigration) {
        const holdfast = join(root, 'packages/cli/bin/holdfast.js');
        await run(process.execPath, [holdfast, 'migrate', '--store', store], { cwd: root, env });
      }
      // Deno keeps the connection of etcd's watch open, and with it the process. The page says so.
      const EXIT = name === 'etcd' && runtime === 'Deno' ? 'yes' : 'no';
      const KEY = `${name} ${runtime}`.replaceAll(/\W+/g, '-');
      const output = await run(program, [...args, 'program.mjs'], {
        cwd: folder,
        env: { ...env, EXIT, KEY, STORE: store, NO_COLOR: '1' },
        timeoutMs: 120_000,
      });
      expect(output).toBe('null\ntrue true\n');
    },
  );
});
