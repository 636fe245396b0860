/** The stores on which leases are handed off between real processes. A further one is a further line: where it is. */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { migrationOf } from 'holdfast';
import {
  available,
  type ServerName,
  startDynamodb,
  startNats,
  startPostgres,
  startRedis,
} from 'holdfast-test-servers';

export interface Place {
  /** For `openStore`. */
  readonly url: string;
  stop(): Promise<void>;
}

interface Kind {
  readonly name: string;
  /** What has to be installed. */
  readonly server: ServerName | null;
  start(): Promise<Place>;
}

const KINDS: readonly Kind[] = [
  { name: 'SQLite', server: null, start: startSqlite },
  { name: 'Redis', server: 'redis', start: () => startRedis() },
  { name: 'PostgreSQL', server: 'postgres', start: startMigratedPostgres },
  { name: 'DynamoDB', server: 'dynamodb', start: () => startMigratedDynamodb('') },
  {
    name: 'DynamoDB in the layout of other software',
    server: 'dynamodb',
    start: () => startMigratedDynamodb('&layout=dynamodb-lock-go'),
  },
  { name: 'NATS', server: 'nats', start: () => startMigratedNats('') },
  {
    name: 'NATS in the layout of other software',
    server: 'nats',
    start: () => startMigratedNats('?layout=cloops'),
  },
];

export const STORES = KINDS.map((kind) => ({
  ...kind,
  isHere: kind.server === null || available(kind.server),
}));

export async function startSqlite(): Promise<Place> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-handoff-'));
  return {
    url: `sqlite:${join(folder, 'locks.db')}`,
    stop: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

async function startMigratedPostgres(): Promise<Place> {
  const server = await startPostgres();
  return migrated({ url: await server.createDatabase(), stop: () => server.stop() });
}

async function startMigratedDynamodb(options: string): Promise<Place> {
  const server = await startDynamodb();
  const url = `dynamodb://test:test@local/handoffs-${randomUUID()}?endpoint=${encodeURIComponent(server.url)}${options}`;
  return migrated({ url, stop: () => server.stop() });
}

async function startMigratedNats(options: string): Promise<Place> {
  const server = await startNats();
  return migrated({ url: `${server.url}/handoffs${options}`, stop: () => server.stop() });
}

async function migrated(place: Place): Promise<Place> {
  const { apply } = await migrationOf(place.url);
  await apply();
  return place;
}
