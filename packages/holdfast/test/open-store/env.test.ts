/** The locks that the environment names. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Locks } from '../../src/index.js';

async function locksOf(environment: Record<string, string>): Promise<Locks> {
  vi.resetModules();
  vi.unstubAllEnvs();
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
  return (await import('../../src/env.js')).locks;
}

async function databaseUrl(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-env-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return `sqlite:${join(folder, 'locks.db')}`;
}

test('importing does nothing; the first use says what is missing', async () => {
  const locks = await locksOf({ HOLDFAST_STORE: '' });
  await expect(locks.acquire('k')).rejects.toThrow(/HOLDFAST_STORE is not set/);
});

test('everything works on the store that is opened with the first command', async () => {
  const url = await databaseUrl();
  const elsewhere = await locksOf({ HOLDFAST_STORE: url, HOLDFAST_NAMESPACE: 'elsewhere' });
  expect(await elsewhere.inspect('k')).toBeNull();
  const locks = await locksOf({ HOLDFAST_STORE: url, HOLDFAST_NAMESPACE: 'shop' });
  const other = await locksOf({ HOLDFAST_STORE: url, HOLDFAST_NAMESPACE: 'shop' });
  expect(locks).not.toBe(other);
  const first = Promise.all([locks.withLock('k', () => 1), locks.withLock('l', () => 2)]);
  expect(await first).toEqual([1, 2]);
  const lease = await locks.acquire('k');
  expect([locks.held('k'), locks.leases().length]).toEqual([lease, 1]);
  expect(await other.tryAcquire('k')).toBeNull();
  expect(await elsewhere.tryAcquire('k')).not.toBeNull();
  const waiting = other.acquire('k');
  await vi.waitFor(async () => expect((await locks.inspect('k'))?.waiters).toHaveLength(1), 60_000);
  await lease.release();
  const handed = await (await waiting).handoff();
  expect((await locks.adopt(handed)).held).toBe(true);
  const keys: string[] = [];
  for await (const { key } of locks.list()) keys.push(key);
  expect(keys).toEqual(['k']);
  expect((await locks.probe()).server).toContain('SQLite');
  await Promise.all([locks.close({ drain: 0 }), other.close({ drain: 0 }), elsewhere.close({ drain: 0 })]);
});

test('both variables are read with the first command, so that a program may set them after its imports', async () => {
  const locks = await locksOf({ HOLDFAST_STORE: '', HOLDFAST_NAMESPACE: '' });
  vi.stubEnv('HOLDFAST_STORE', 'memory:');
  vi.stubEnv('HOLDFAST_NAMESPACE', 'a name with / in it');
  await expect(locks.acquire('k')).rejects.toThrow(/namespace/);
  vi.stubEnv('HOLDFAST_NAMESPACE', 'prod');
  const lease = await locks.acquire('k');
  expect(Buffer.from(await lease.handoff(), 'base64url').toString()).toContain('"prod/k"');
  await locks.close({ drain: 0 });
});

test('what keeps the store from opening is the error of every call', async () => {
  const locks = await locksOf({ HOLDFAST_STORE: 'mongo://localhost' });
  await expect(locks.acquire('k')).rejects.toThrow(/There is no store for "mongo:"/);
  await expect(locks.tryAcquire('k')).rejects.toMatchObject({ name: 'StoreError' });
  await expect(locks.inspect('k')).rejects.toThrow(/There is no store for "mongo:"/);
  await locks.close();
});

test('closed before it was used, nothing was opened', async () => {
  const locks = await locksOf({ HOLDFAST_STORE: 'sqlite:/nowhere/locks.db' });
  await locks.close();
  await expect(locks.acquire('k')).rejects.toThrow(/closed/);
});
