/** Three NATS servers, of which one or two go. Failing over takes them 4 to 7 seconds. */
import { setTimeout as sleep } from 'node:timers/promises';
import { StoreError } from 'holdfast';
import { available, type NatsNode } from 'holdfast-test-servers';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type ClusterWorld, natsClusterWorld, ranksOf } from '../faults/nats-cluster-world.js';
import { eventually, expectExclusive, later, Scene, SOON_MS } from '../faults/scene.js';

/** A failover, and a machine that is busy with other tests. */
const FAILOVER_MS_MAX = 40_000;

describe.runIf(available('nats', { own: true }))('faults of a NATS cluster', { timeout: 120_000 }, () => {
  let world: ClusterWorld;
  beforeAll(async () => {
    world = await natsClusterWorld();
  });
  const dead = new Set<NatsNode>();
  const kill = async (...nodes: readonly NatsNode[]): Promise<void> => {
    for (const node of nodes) dead.add(node);
    await Promise.all(nodes.map((node) => node.kill()));
  };
  const recover = async (): Promise<void> => {
    await Promise.all(world.cluster.nodes.map((node) => node.resume()));
    await Promise.all([...dead].map((node) => node.restart()));
    dead.clear();
    await world.cluster.settle();
  };
  afterEach(recover);
  afterAll(() => world?.close());

  it('one node is killed and then one cut off under processes that contend: never two at once, and work goes on', async ({
    onTestFinished,
  }) => {
    const scene = await Scene.open(world, onTestFinished);
    const { nodes } = world.cluster;
    const fleet = await Promise.all(
      nodes.map((via, at) =>
        scene.contender(`n${at}`, { via, contenders: 2, ttlMs: 2_000, longMs: 2_500, longEvery: 20 }),
      ),
    );
    await Promise.all(fleet.map((child) => child.more(3)));
    const { leader } = await ranksOf(world.cluster, scene.server);
    await kill(leader);
    // Those who came through it go on through the others.
    await Promise.all(fleet.map((child) => child.more(2, FAILOVER_MS_MAX)));
    await recover();
    const { leader: cutOff } = await ranksOf(world.cluster, scene.server);
    await cutOff.pause();
    await Promise.race(fleet.map((child) => child.more(10, FAILOVER_MS_MAX)));
    await recover();
    await Promise.all(fleet.map((child) => child.more(2, FAILOVER_MS_MAX)));
    expectExclusive(await scene.finish());
  });

  it('F7: without a majority everything is unknown, nothing busy and nothing lost; then the lease lives on', async ({
    onTestFinished,
  }) => {
    const scene = await Scene.open(world, onTestFinished);
    const setUp = await scene.locks();
    await (await setUp.acquire('free')).release();
    const { leader, followers } = await ranksOf(world.cluster, scene.server);
    const [left, gone] = followers;
    const holder = await scene.locks({ via: left, ttlMs: 60_000, owner: 'holder' });
    const other = await scene.locks({ via: left, ttlMs: 2_000, owner: 'other' });
    const lease = await holder.acquire('held');
    expect(await other.tryAcquire('held')).toBeNull();
    await kill(leader, gone);
    await expect(other.tryAcquire('held')).rejects.toBeInstanceOf(StoreError);
    await expect(other.tryAcquire('free')).rejects.toBeInstanceOf(StoreError);
    await expect(other.acquire('free', { wait: 1_000 })).rejects.toBeInstanceOf(StoreError);
    await expect(other.inspect('held')).rejects.toBeInstanceOf(StoreError);
    lease.assertHeld();
    await recover();
    // The bucket may have no leader yet. What that makes of a renewal is unknown too.
    const renewal = (): Promise<unknown> =>
      lease.renew().then(
        () => 'renewed',
        (error: unknown) => error,
      );
    const outcomes: unknown[] = [];
    await eventually(
      async () => outcomes[outcomes.push(await renewal()) - 1],
      (outcome) => outcome === 'renewed',
      FAILOVER_MS_MAX,
    );
    for (const error of outcomes.slice(0, -1)) expect(error).toBeInstanceOf(StoreError);
    lease.assertHeld();
    expect(await other.tryAcquire('held')).toBeNull();
    await (await other.acquire('free', { wait: '30s' })).release();
    await lease.release();
    const next = await other.acquire('held', { wait: SOON_MS });
    expect(next.token).toBeGreaterThan(lease.token);
    scene.expectNothingUnhandled();
  });

  it('F22: who comes through a follower that has slept is told what is so now, not what it remembers', async ({
    onTestFinished,
  }) => {
    const scene = await Scene.open(world, onTestFinished);
    await (await (await scene.locks()).acquire('warm')).release();
    const { leader, followers } = await ranksOf(world.cluster, scene.server);
    const [asleep] = followers;
    const holder = await scene.locks({ via: leader, ttlMs: 60_000, owner: 'holder' });
    const behind = await scene.locks({ via: asleep, ttlMs: 60_000, owner: 'behind' });
    for (let round = 0; round < 5; round++) {
      const key = `k${round}`;
      // The last that the follower hears before it sleeps is that the key is free.
      await (await behind.acquire(key, { wait: SOON_MS })).release();
      await asleep.pause();
      const lease = await holder.acquire(key, { wait: SOON_MS });
      const trying = later(behind.tryAcquire(key));
      await sleep(50);
      await asleep.resume();
      expect(await trying).toBeNull();
      expect((await behind.inspect(key))?.holders.map(({ token }) => token)).toEqual([lease.token]);
      await lease.release();
    }
    scene.expectNothingUnhandled();
  });
});
