/** Temporary folders, commands and open stores for the tests of the SQLite store. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Claim, Command, Release, Renew, Reply, Store } from '../../src/protocol/index.js';
import { loadDriver, type OwnDatabase } from '../../src/stores/sqlite/database.js';
import type { ProcessStat, ProcessTable } from '../../src/stores/sqlite/process-table.js';
import { type SqliteStore, type StoreParts, storeOn } from '../../src/stores/sqlite/store.js';

/** The one that the store itself uses: two copies of SQLite in one process do not see each other's locks. */
export const Driver = loadDriver();

const clearing: (() => void)[] = [];

/** For `afterEach`: closes and deletes what the test made. */
export function clearScene(): void {
  for (const clear of clearing.splice(0).reverse()) clear();
}

export function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-sqlite-'));
  clearing.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export const freshFile = (): string => join(freshFolder(), 'locks.db');

/** A connection beside the store's own. */
export function connection(file: string): OwnDatabase {
  const database = new Driver(file);
  let open = true;
  const close = (): void => {
    if (open) database.close();
    open = false;
  };
  clearing.push(close);
  return { prepare: (sql) => database.prepare(sql), exec: (sql) => database.exec(sql), close };
}

export function storeAt(file: string, parts: Partial<StoreParts> = {}): SqliteStore {
  const database = connection(file);
  return storeOn(database, { liveness: true, closed: () => database.close(), ...parts });
}

export function claimOf(key: string, process: string, number = 1, more: Partial<Claim> = {}): Claim {
  return {
    kind: 'claim',
    key,
    hold: { process, number },
    owner: process,
    permits: 1,
    capacity: 1,
    ttlMs: 30_000,
    queue: true,
    inbox: null,
    metadata: null,
    ...more,
  };
}

export function releaseOf({ key, hold }: Claim): Release {
  return { kind: 'release', key, hold, minHoldMs: 0 };
}

export function renewOf({ key, hold, ttlMs }: Claim): Renew {
  return { kind: 'renew', key, hold, ttlMs, block: false };
}

export async function ask(store: Store, command: Command): Promise<Reply> {
  const [reply] = store.apply([command]);
  if (!reply) throw new Error('No reply.');
  return reply;
}

/** A process table in which tests decide who lives. This process lives, and started at tick 1. */
export class ScriptedTable implements ProcessTable {
  boot: string | null = 'boot-1';
  namespace: string | null = 'pid:[1]';
  clock: string | null = 'boot-1';
  readonly stats = new Map<number, ProcessStat | 'hidden'>([[process.pid, { started: '1', zombie: false }]]);

  exists(pid: number): boolean {
    return this.stats.has(pid);
  }

  stat(pid: number): ProcessStat | null {
    const stat = this.stats.get(pid);
    return stat === undefined || stat === 'hidden' ? null : stat;
  }
}
