/** PostgreSQL as the store's tests need it: clients of every kind, ended with what they were opened for. */
import {
  type MigrateOptions,
  migrate,
  type PostgresClient,
  type PostgresStoreOptions,
  postgresStore,
} from 'holdfast/postgres';
import type { Claim, Command, HoldId, Release, Renew, Reply, Store } from 'holdfast/protocol';
import type { Harness } from 'holdfast/testkit';
import pg from 'pg';
import postgres from 'postgres';

export { runSuite } from '../store-talk.js';

/** A client and the way to end it. */
export interface Opened {
  readonly client: PostgresClient;
  end(): Promise<void>;
}

export type Opener = (url: string) => Promise<Opened>;

export const openPool: Opener = async (url) => {
  const pool = new pg.Pool({ connectionString: url, max: 5 });
  pool.on('error', () => undefined);
  return { client: pool, end: () => pool.end() };
};

export const openClient: Opener = async (url) => {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  return { client, end: () => client.end() };
};

export const openPostgresJs: Opener = async (url) => {
  const sql = postgres(url, { max: 5, onnotice: () => undefined });
  return { client: sql, end: () => sql.end({ timeout: 1 }) };
};

export const OPENERS = [
  { name: 'a Pool of pg', open: openPool },
  { name: 'a Client of pg', open: openClient },
  { name: 'postgres', open: openPostgresJs },
] as const;

/** A store whose client ends with it. */
export async function openStoreWith(
  url: string,
  open: Opener = openPool,
  options: PostgresStoreOptions = {},
): Promise<Store> {
  const { client, end } = await open(url);
  const store = postgresStore(client, options);
  let ended: Promise<void> | null = null;
  return {
    ...store,
    async close() {
      await store.close();
      ended ??= end();
      await ended;
    },
  };
}

export async function query<Row extends object>(
  url: string,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(text, values)).rows;
  } finally {
    await client.end();
  }
}

export async function migrated(url: string, options: MigrateOptions = {}): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await migrate(client, options).finally(() => client.end());
  return url;
}

export function harnessOf(name: string, url: () => string, open: Opener): Harness {
  return {
    name,
    open: () => openStoreWith(url(), open),
    async forget(key) {
      await query(url(), 'DELETE FROM holdfast.records WHERE key = $1', [key]);
    },
    async spoil(key) {
      await query(url(), 'UPDATE holdfast.records SET version = 99 WHERE key = $1', [key]);
    },
  };
}

/** PostgreSQL is the slowest under load. */
export const holdOf = (process: string, number = 1): HoldId => ({ process, number });

export function claimOf(key: string, hold: HoldId, more: Partial<Claim> = {}): Claim {
  const plain = { owner: 'test', permits: 1, capacity: 1, ttlMs: 30_000, queue: false };
  return { kind: 'claim', key, hold, ...plain, inbox: null, metadata: null, ...more };
}

export function renewOf(key: string, hold: HoldId, ttlMs = 30_000): Renew {
  return { kind: 'renew', key, hold, ttlMs, block: false };
}

export function releaseOf(key: string, hold: HoldId): Release {
  return { kind: 'release', key, hold, minHoldMs: 0 };
}

export async function say(store: Store, command: Command): Promise<Reply> {
  const [reply] = store.apply([command]);
  if (!reply) throw new Error('apply gave no promise');
  return await reply;
}
