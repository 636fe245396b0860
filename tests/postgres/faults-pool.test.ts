/** A pool that belongs to the user, and is busy with the user's own work. */
import { createLocks, type Locks, StoreError } from 'holdfast';
import { postgresStore } from 'holdfast/postgres';
import { available } from 'holdfast-test-servers';
import pg from 'pg';
import { afterAll, describe, expect, it } from 'vitest';
import { postgresWorld } from '../faults/postgres-world.js';
import { eventually, later, lossOf, type OnFinished, Scene, SOON_MS, waiterCount } from '../faults/scene.js';
import { machineMs } from '../faults/turns.js';

const WORLD = postgresWorld('pg');

function locksOn(pool: pg.Pool, ttlMs: number, onFinished: OnFinished): Locks {
  const locks = createLocks(postgresStore(pool), { ttl: ttlMs });
  onFinished(() => locks.close({ drain: 0 }).finally(() => pool.end()));
  return locks;
}

describe.runIf(available('postgres')).concurrent('faults of a pool', { timeout: 60_000 }, () => {
  afterAll(() => WORLD.close());

  it('F14: the user takes every connection: nothing hangs, every outcome is clear, work resumes by itself', async ({
    onTestFinished,
  }) => {
    const scene = await Scene.open(WORLD, onTestFinished);
    const pool = new pg.Pool({ connectionString: scene.server.url, max: 3 });
    const locks = locksOn(pool, 1_500, onTestFinished);
    const lease = await locks.acquire('k');
    const waiting = later((await scene.locks({ ttlMs: 20_000 })).acquire('k', { wait: '50s' }));
    const taken = await Promise.all([pool.connect(), pool.connect(), pool.connect()]);
    const lost = lossOf(lease);
    const takenMs = machineMs();
    await expect(locks.tryAcquire('free')).rejects.toBeInstanceOf(StoreError);
    await expect(locks.acquire('free', { wait: 300 })).rejects.toBeInstanceOf(StoreError);
    expect((await lost) - takenMs).toBeLessThan(1_500 + SOON_MS / 2);
    // Nobody else is held up, and nothing leaks past the lease.
    const next = await waiting;
    expect(lease.held, 'held by two').toBe(false);
    expect(next.token).toBeGreaterThan(lease.token);
    for (const client of taken) client.release();
    await (await locks.acquire('free', { wait: SOON_MS })).release();
    next.assertHeld();
    await next.release();
    await (await locks.acquire('k', { wait: SOON_MS })).release();
    // The user gets them back too.
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    scene.expectNothingUnhandled();
  });

  it('F14: a hundred waiters take no connection from the user', async ({ onTestFinished }) => {
    const scene = await Scene.open(WORLD, onTestFinished);
    const pool = new pg.Pool({ connectionString: scene.server.url, max: 2 });
    const locks = locksOn(pool, 20_000, onTestFinished);
    const holder = await scene.locks({ ttlMs: 20_000 });
    const names = Array.from({ length: 100 }, (_, at) => `k${at}`);
    const held = await Promise.all(names.map((name) => holder.acquire(name)));
    const waits = names.map((name) => later(locks.acquire(name, { wait: '50s' })));
    await eventually(
      () => waiterCount(holder, 'k99'),
      (count) => count === 1,
    );
    // Were a connection kept by a waiter, none of these would end before the waits do.
    for (let served = 0; served < 100; served += 1) await pool.query('SELECT pg_sleep(0.001)');
    expect(await waiterCount(holder, 'k99')).toBe(1);
    await Promise.all(held.map((lease) => lease.release()));
    await Promise.all(waits);
  });

  it('P19: one waiter asks the server a few times a second at most', async ({ onTestFinished }) => {
    const scene = await Scene.open(WORLD, onTestFinished);
    const pool = new pg.Pool({ connectionString: scene.server.url });
    const locks = locksOn(pool, 20_000, onTestFinished);
    await (await locks.acquire('warm')).release();
    await (await scene.locks({ ttlMs: 20_000 })).acquire('k');
    let asked = 0;
    pool.on('acquire', () => {
      asked += 1;
    });
    expect(await locks.tryAcquire('k', { wait: 4_000 })).toBeNull();
    console.log(`one waiter asked ${asked} times in 4 s`);
    expect(asked).toBeGreaterThan(0);
    expect(asked).toBeLessThan(4 * 4);
  });
});
