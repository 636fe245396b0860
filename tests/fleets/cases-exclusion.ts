/** Both kinds exclude each other, take over from each other's crashes, and leave each other's records alone. */
import { LeaseLostError } from 'holdfast';
import { expect, it } from 'vitest';
import { claimOf, type Fleet, freshName, locksOf, pause, say, until } from './fleet.js';

/** `heartbeats`: how often in a row the original can extend a lock. */
export function exclusionCases(open: () => Fleet, { heartbeats }: { heartbeats: number }): void {
  it.concurrent('a lock of the other software is busy for Holdfast, and free once it is released', async () => {
    const fleet = open();
    const name = freshName();
    const locks = locksOf(fleet);
    const theirs = await fleet.foreign().acquire(name, 'their-worker', 30_000);
    expect(await locks.tryAcquire(name)).toBeNull();
    expect((await locks.inspect(name))?.holders).toMatchObject([
      { owner: 'their-worker', permits: 1, capacity: 1, token: 0 },
    ]);
    expect(await theirs?.release()).toBe(true);
    await using lease = await locks.acquire(name);
    expect(lease.held).toBe(true);
  });

  it.concurrent('a lock of Holdfast is busy for the other software, and free once it is released', async () => {
    const fleet = open();
    const name = freshName();
    const locks = locksOf(fleet);
    const lease = await locks.acquire(name);
    expect(await fleet.foreign().acquire(name, 'their-worker', 30_000)).toBeNull();
    await lease.release();
    const theirs = await fleet.foreign().acquire(name, 'their-worker', 30_000);
    expect(theirs).not.toBeNull();
    expect(await locks.tryAcquire(name)).toBeNull();
    expect(await theirs?.release()).toBe(true);
  });

  it.concurrent('Holdfast takes over when the other software dies, and not before its lease is over', async () => {
    const fleet = open();
    const name = freshName();
    const locks = locksOf(fleet);
    const from = Date.now();
    const leaseMs = 2_000;
    await fleet.foreign().acquire(name, 'their-worker', leaseMs);
    await using lease = await locks.acquire(name, { wait: leaseMs + fleet.afterForeignMs + 5_000 });
    expect(lease.held).toBe(true);
    expect(Date.now() - from).toBeGreaterThanOrEqual(leaseMs);
  });

  it.concurrent('the other software takes over when Holdfast dies, and not before its lease is over', async () => {
    const fleet = open();
    const name = freshName();
    const store = fleet.store();
    const claim = claimOf(name, 1_500);
    const sent = performance.now();
    expect(await say(store, claim)).toMatchObject({ kind: 'granted' });
    const theirs = fleet.foreign();
    const take = async () => (await theirs.acquire(name, 'their-worker', 30_000)) !== null;
    await until('taken over', take, 1_500 + fleet.afterOursMs + 60_000);
    expect(performance.now() - sent).toBeGreaterThanOrEqual(1_500);
    // It was not dead after all, and comes back: too late for everything.
    const { key, hold, ttlMs } = claim;
    const before = await fleet.record(name);
    expect(await say(store, claim)).toMatchObject({ kind: 'busy' });
    expect(await say(store, { kind: 'renew', key, hold, ttlMs, block: true })).toMatchObject({
      kind: 'lost',
    });
    const released = await say(store, { kind: 'release', key, hold, minHoldMs: 0 });
    expect(released).toMatchObject({ kind: 'released', held: false });
    expect(await fleet.record(name)).toEqual(before);
  });

  it.concurrent('a lease that is lost to the other software says so', async () => {
    const fleet = open();
    const name = freshName();
    const locks = locksOf(fleet);
    const lease = await locks.acquire(name, { ttl: 2_000 });
    const theirs = fleet.foreign(() => Date.now() + 3_600_000);
    expect(await theirs.acquire(name, 'their-worker', 30_000)).not.toBeNull();
    await expect(lease.renew()).rejects.toThrow(LeaseLostError);
    expect(lease.held).toBe(false);
    await lease.release();
    expect((await locks.inspect(name))?.holders[0]?.owner).toBe('their-worker');
  });

  it.concurrent('a record of the other software stays word for word while it holds, whatever Holdfast asks', async () => {
    const fleet = open();
    const name = freshName();
    const locks = locksOf(fleet);
    const others = locksOf(fleet);
    const late = await locks.acquire(name, { ttl: 300, renew: false });
    const theirs = fleet.foreign(() => Date.now() + 3_600_000);
    const lock = await theirs.acquire(name, 'their-worker', 30_000);
    const before = await fleet.record(name);
    expect(await others.tryAcquire(name)).toBeNull();
    await expect(locks.acquire(name, { wait: 300 })).rejects.toThrow('their-worker');
    await expect(late.renew()).rejects.toThrow(LeaseLostError);
    await late.release();
    expect(await locks.inspect(name)).not.toBeNull();
    expect(await fleet.record(name)).toEqual(before);
    expect(await lock?.release()).toBe(true);
    expect(await fleet.record(name)).toBeNull();
  });

  it.concurrent('a record of the other software that is over stays as it is until somebody wants the lock', async () => {
    const fleet = open();
    const name = freshName();
    const store = fleet.store();
    await fleet.foreign(() => Date.now() - 180_000).acquire(name, 'their-worker', 60_000);
    const before = await fleet.record(name);
    const { key, hold, ttlMs } = claimOf(name, 1_000);
    await say(store, { kind: 'renew', key, hold, ttlMs, block: false });
    await say(store, { kind: 'release', key, hold, minHoldMs: 0 });
    expect(await fleet.record(name)).toEqual(before);
    expect(await store.read(key)).toBeNull();
    expect(await say(store, claimOf(name, 5_000))).toMatchObject({ kind: 'granted' });
  });

  if (heartbeats > 0) heartbeatCase(open, heartbeats);

  it.concurrent('an operator ends a lock of the other software, and its heartbeat does not bring it back', async () => {
    const fleet = open();
    const name = freshName();
    const locks = locksOf(fleet);
    const lock = await fleet.foreign().acquire(name, 'their-worker', 30_000);
    expect(await locks.evict(name)).toBe(1);
    await using lease = await locks.acquire(name);
    if (heartbeats > 0) expect(await lock?.heartbeat(2_000)).toBe(false);
    await lock?.release();
    await lease.renew();
    expect(lease.held).toBe(true);
  });

  it.concurrent('a clock of the other software that is ahead, as far as is allowed for, takes no lock of ours', async () => {
    const fleet = open();
    const name = freshName();
    const claim = claimOf(name, 1_500);
    const sent = performance.now();
    expect(await say(fleet.store(), claim)).toMatchObject({ kind: 'granted' });
    const fast = fleet.foreign(() => Date.now() + fleet.clocksApartMs);
    const take = async () => (await fast.acquire(name, 'their-worker', 30_000)) !== null;
    await until('taken over', take, 1_500 + fleet.afterOursMs + 60_000);
    expect(performance.now() - sent).toBeGreaterThanOrEqual(1_500);
  });

  it.concurrent('a clock of the other software that is behind, as far as is allowed for, loses it no lock', async () => {
    const fleet = open();
    const name = freshName();
    const locks = locksOf(fleet);
    const from = performance.now();
    await fleet.foreign(() => Date.now() - fleet.clocksApartMs).acquire(name, 'their-worker', 2_000);
    const lease = await locks.acquire(name, { wait: 2_000 + fleet.afterForeignMs + 5_000 });
    expect(performance.now() - from).toBeGreaterThanOrEqual(2_000);
    await lease.release();
  });
}

function heartbeatCase(open: () => Fleet, heartbeats: number): void {
  it.concurrent('heartbeats of the other software keep its lock until they end', async () => {
    const fleet = open();
    const name = freshName();
    const locks = locksOf(fleet);
    const lock = await fleet.foreign().acquire(name, 'their-worker', 2_000);
    for (let beat = 0; beat < heartbeats; beat++) {
      await pause(700);
      expect(await locks.tryAcquire(name)).toBeNull();
      expect(await lock?.heartbeat(2_000)).toBe(true);
      expect(await locks.tryAcquire(name)).toBeNull();
    }
    await lock?.release();
    await using lease = await locks.acquire(name, { wait: 2_000 + fleet.afterForeignMs + 5_000 });
    expect(lease.held).toBe(true);
    // It would come back over us otherwise.
    expect(await lock?.heartbeat(2_000)).toBe(false);
  });
}
