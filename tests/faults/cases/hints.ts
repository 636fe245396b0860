/** Hints are lost: the connection on which a process hears them is dead. Waiters proceed all the same. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lease, Locks } from 'holdfast';
import { WINDOW_MS } from 'holdfast/protocol';
import type { TcpProxy } from 'holdfast-test-servers';
import { afterAll, describe, expect, it } from 'vitest';
import { eventually, later, Scene, SOON_MS, waiterCount } from '../scene.js';
import { StoreLog } from '../store-log.js';
import { machineMs } from '../turns.js';
import type { World } from '../world.js';

const TTL_MS = 20_000;
const OWNERS = ['b', 'c', 'd'];
const HINTS_MS_MAX = 60_000;

interface User {
  readonly owner: string;
  readonly locks: Locks;
  readonly log: StoreLog;
}

async function userOf(scene: Scene, owner: string, hintsVia?: TcpProxy): Promise<User> {
  const log = new StoreLog();
  const locks = await scene.locks({ ttlMs: TTL_MS, owner, log, ...(hintsVia && { hintsVia }) });
  return { owner, locks, log };
}

/** Acquires the key and lets the others queue, one after the other. Each holds it once; the order in which they did. */
async function passThrough(holder: User, waiters: readonly User[], key: string): Promise<readonly User[]> {
  const order: User[] = [];
  const first = await holder.locks.acquire(key, { wait: SOON_MS });
  const waits: Promise<void>[] = [];
  for (const [at, user] of waiters.entries()) {
    const onTurn = async (lease: Lease): Promise<void> => {
      order.push(user);
      await lease.release();
    };
    waits.push(later(user.locks.acquire(key, { wait: '2m' }).then(onTurn)));
    await eventually(
      () => waiterCount(holder.locks, key),
      (count) => count === at + 1,
    );
  }
  await first.release();
  await Promise.all(waits);
  return order;
}

/**
 * By polls alone each has its turn, once, and the order is approximate: a waiter is passed only after it did not claim
 * for a whole window, by the store's time, while it could have had the key.
 */
async function expectTurns(holder: User, waiters: readonly User[], key: string): Promise<void> {
  const order = await passThrough(holder, waiters, key);
  expect(order.map(({ owner }) => owner).toSorted()).toEqual(OWNERS);
  const name = `default/${key}`;
  const [releasedAt = Number.NaN] = holder.log.timesOf('released', name);
  for (const [turn, user] of order.entries()) {
    const [grantedAt = Number.NaN] = user.log.timesOf('granted', name);
    const ahead = waiters.slice(0, waiters.indexOf(user));
    for (const passed of ahead.filter((other) => !order.slice(0, turn).includes(other))) {
      const claimedAt = passed.log.timesOf('busy', name).filter((at) => at < grantedAt);
      const waitedMs = grantedAt - Math.max(releasedAt, ...claimedAt);
      expect(waitedMs, `${user.owner} passed ${passed.owner}`).toBeGreaterThanOrEqual(WINDOW_MS);
    }
  }
}

/** Hints arrive when a waiter is told that it is its turn. The first ones may fall into the time before it listens. */
async function expectHints(holder: User, waiter: User, key: string): Promise<void> {
  const untilMs = machineMs() + HINTS_MS_MAX;
  while (!waiter.log.turns.includes(`default/${key}`)) {
    expect(machineMs(), 'no hint arrived').toBeLessThan(untilMs);
    await passThrough(holder, [waiter], key);
  }
}

/** They are made again at once, so they are cut again at once, until the work is done and each has been cut. */
async function whileCut({ server }: Scene, work: () => Promise<void>): Promise<void> {
  let over = false;
  const cut = async (): Promise<void> => {
    for (let cuts = 0; !over || cuts <= OWNERS.length; await sleep(20)) cuts += await server.cutListeners();
  };
  const cutting = later(cut());
  try {
    await work();
  } finally {
    over = true;
  }
  await cutting;
}

export function hintFaults(world: World): void {
  describe.concurrent(`${world.name}: wake-ups`, { timeout: 240_000 }, () => {
    afterAll(() => world.close());

    it('F15, F32: whose connection is killed are made up for by the poll, and come back', async ({
      onTestFinished,
    }) => {
      const scene = await Scene.open(world, onTestFinished);
      const holder = await userOf(scene, 'a');
      const waiters = await Promise.all(OWNERS.map((owner) => userOf(scene, owner)));
      const [waiter = holder] = waiters;
      await expectHints(holder, waiter, 'before');
      await whileCut(scene, () => expectTurns(holder, waiters, 'k'));
      await expectHints(holder, waiter, 'after');
      scene.expectNothingUnhandled();
    });

    it('F15, F32: that never arrive are made up for by the poll, and come back', async ({
      onTestFinished,
    }) => {
      const scene = await Scene.open(world, onTestFinished);
      const proxy = await scene.proxy();
      const holder = await userOf(scene, 'a');
      const waiters = await Promise.all(OWNERS.map((owner) => userOf(scene, owner, proxy)));
      const [waiter = holder] = waiters;
      await expectHints(holder, waiter, 'before');
      proxy.hang();
      await expectTurns(holder, waiters, 'hung');
      proxy.cut();
      await expectTurns(holder, waiters, 'cut');
      proxy.pass();
      await expectHints(holder, waiter, 'after');
      scene.expectNothingUnhandled();
    });
  });
}
