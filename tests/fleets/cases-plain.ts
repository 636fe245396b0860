/** What a lock has to do, through the public API, on a layout of other software. */
import { AcquireTimeoutError, LeaseLostError, UnsupportedError } from 'holdfast';
import { expect, it } from 'vitest';
import { claimOf, estimatesAgree, type Fleet, freshName, listed, locksOf, pause, say } from './fleet.js';

export function plainCases(open: () => Fleet): void {
  it.concurrent('acquires, excludes, hands over and releases', async () => {
    const fleet = open();
    const name = freshName();
    const locks = locksOf(fleet);
    const others = locksOf(fleet);
    const lease = await locks.acquire(name, { metadata: { step: 4 } });
    expect(await others.tryAcquire(name)).toBeNull();
    expect((await others.inspect(name))?.holders).toMatchObject([
      { token: lease.token, metadata: { step: 4 } },
    ]);
    await expect(others.acquire(name, { wait: 200 })).rejects.toThrow(AcquireTimeoutError);
    await lease.release();
    expect(await others.inspect(name)).toBeNull();
    const next = await others.acquire(name);
    expect(next.token).toBeGreaterThan(lease.token);
    await next.release();
  });

  it.concurrent('F24: renews ten times, and then releases', async () => {
    const fleet = open();
    const name = freshName();
    const locks = locksOf(fleet);
    const others = locksOf(fleet);
    const lease = await locks.acquire(name, { ttl: '5s' });
    for (let time = 0; time < 10; time++) {
      await lease.renew();
      expect(lease.held).toBe(true);
    }
    expect(await fleet.foreign().acquire(name, 'their-worker', 5_000)).toBeNull();
    await lease.release();
    await (await others.acquire(name, { wait: 0 })).release();
  });

  it.concurrent('renews by itself for longer than the ttl, and the other software sees it held throughout', async () => {
    const fleet = open();
    const name = freshName();
    const locks = locksOf(fleet);
    await using lease = await locks.acquire(name, { ttl: 3_000 });
    const theirs = fleet.foreign();
    for (let look = 0; look < 12; look++) {
      await pause(350);
      expect(await theirs.acquire(name, 'their-worker', 5_000)).toBeNull();
    }
    expect(lease.held).toBe(true);
  });

  it.concurrent('ends by its time when nobody renews it, and the next one has a higher token', async () => {
    const fleet = open();
    const name = freshName();
    const locks = locksOf(fleet);
    const others = locksOf(fleet);
    const lease = await locks.acquire(name, { ttl: 500, renew: false });
    const next = await others.acquire(name, { wait: '10s' });
    expect(lease.held).toBe(false);
    expect(next.token).toBeGreaterThan(lease.token);
    await next.release();
  });

  it.concurrent('F5: a claim that was given up leaves nothing behind', async () => {
    const fleet = open();
    const name = freshName();
    const locks = locksOf(fleet);
    const others = locksOf(fleet);
    const lock = await fleet.foreign().acquire(name, 'their-worker', 30_000);
    const before = await fleet.record(name);
    const signal = AbortSignal.timeout(150);
    await expect(locks.acquire(name, { wait: '20s', signal })).rejects.toThrow('aborted');
    await pause(300);
    expect(await fleet.record(name)).toEqual(before);
    await lock?.release();
    await (await others.acquire(name, { wait: '2s' })).release();
  });

  it.concurrent('F27: a claim that its withdrawal overtook is refused, and so is a late double of one that is over', async () => {
    const fleet = open();
    const claim = claimOf(freshName(), 5_000);
    const { key, hold } = claim;
    const withdraw = { kind: 'release', key, hold, minHoldMs: 0 } as const;
    expect(await say(fleet.store(), withdraw)).toMatchObject({ kind: 'released', held: false });
    expect(await say(fleet.store(), claim)).toMatchObject({ kind: 'withdrawn' });
    const second = { ...claim, hold: { ...hold, number: 2 } };
    expect(await say(fleet.store(), second)).toMatchObject({ kind: 'granted' });
    const over = await say(fleet.store(), { ...withdraw, hold: second.hold });
    expect(over).toMatchObject({ kind: 'released', held: true });
    for (const late of [claim, second]) {
      expect(await say(fleet.store(), late)).toMatchObject({ kind: 'withdrawn' });
    }
  });

  it.concurrent('keeps a lock for its minHold after the release, also from the other software', async () => {
    const fleet = open();
    const name = freshName();
    const locks = locksOf(fleet);
    const lease = await locks.acquire(name, { minHold: '20s' });
    await lease.release();
    expect(await fleet.foreign().acquire(name, 'their-worker', 5_000)).toBeNull();
    expect(await locks.tryAcquire(name)).toBeNull();
    expect((await locks.inspect(name))?.holders).toMatchObject([{ resting: true }]);
    expect(await locks.evict(name)).toBe(1);
    expect(await fleet.foreign().acquire(name, 'their-worker', 5_000)).not.toBeNull();
  });

  it.concurrent('an evicted lease learns the reason while the lock stays with Holdfast', async () => {
    const fleet = open();
    const name = freshName();
    const [locks, others] = [locksOf(fleet), locksOf(fleet)];
    const lease = await locks.acquire(name, { ttl: '60s' });
    expect(await others.evict(name, { token: lease.token, reason: 'the host is retired' })).toBe(1);
    const next = await others.acquire(name, { ttl: '60s' });
    await expect(lease.renew()).rejects.toThrow(/the host is retired/);
    expect(next.held).toBe(true);
  });

  it.concurrent('an evicted lease is lost, whoever holds the lock by then', async () => {
    const fleet = open();
    const name = freshName();
    const [locks, others] = [locksOf(fleet), locksOf(fleet)];
    const lease = await locks.acquire(name, { ttl: '60s' });
    expect(await others.evict(name, { reason: 'the host is retired' })).toBe(1);
    expect(await fleet.foreign().acquire(name, 'their-worker', 20_000)).not.toBeNull();
    await expect(lease.renew()).rejects.toThrow(LeaseLostError);
    expect(await others.tryAcquire(name)).toBeNull();
  });

  it.concurrent('a lease handed on to another process stays the lock that it was', async () => {
    const fleet = open();
    const name = freshName();
    const locks = locksOf(fleet);
    const others = locksOf(fleet);
    const lease = await locks.acquire(name, { ttl: '10s' });
    const adopted = await others.adopt(await lease.handoff());
    expect(adopted.token).toBe(lease.token);
    await locks.close({ drain: 0 });
    expect(await fleet.foreign().acquire(name, 'their-worker', 5_000)).toBeNull();
    await adopted.renew();
    await adopted.release();
    expect(await fleet.foreign().acquire(name, 'their-worker', 5_000)).not.toBeNull();
  });

  it.concurrent('shows locks of both kinds in lists', async () => {
    const fleet = open();
    const name = freshName();
    const locks = locksOf(fleet);
    await fleet.foreign().acquire(`${name}-theirs`, 'their-worker', 30_000);
    await using lease = await locks.acquire(`${name}-ours`, { owner: 'our-worker' });
    await (await locks.acquire(`${name}-released`)).release();
    const all = await listed(locks, name);
    expect(all.map(({ key, holders }) => [key, holders[0]?.owner])).toEqual([
      [`${name}-ours`, 'our-worker'],
      [`${name}-theirs`, 'their-worker'],
    ]);
    expect(lease.held).toBe(true);
  });

  it.concurrent('F10: tokens rise across releases, cleaned-up records, and holders of the other kind', async () => {
    const fleet = open();
    const name = freshName();
    const locks = locksOf(fleet);
    let last = 0;
    for (let round = 0; round < 3; round++) {
      const lease = await locks.acquire(name);
      expect(lease.token).toBeGreaterThan(last);
      last = lease.token;
      await lease.release();
      if (round === 0) await fleet.forget(name);
      if (round === 1) await (await fleet.foreign().acquire(name, 'their-worker', 5_000))?.release();
      await estimatesAgree();
    }
  });

  it.concurrent('refuses what it cannot carry, by name', async () => {
    const fleet = open();
    const name = freshName();
    const locks = locksOf(fleet);
    const refusals = [
      locks.semaphore(name, { capacity: 3 }).tryAcquire(),
      locks.readWrite(name).read.tryAcquire(),
      locks.readWrite(name).write.tryAcquire(),
    ];
    for (const refusal of refusals) {
      await expect(refusal).rejects.toThrow(UnsupportedError);
      await expect(refusal).rejects.toThrow(`layout ${fleet.layout.name}`);
    }
    expect(await fleet.record(name)).toBeNull();
    expect(fleet.store().traits.queue).toBe(false);
  });
}
