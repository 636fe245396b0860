/** Three members of etcd, of which one is killed, paused or cut off from the others. */
import { available, type EtcdNode } from 'holdfast-test-servers';
import { afterAll, afterEach, beforeAll, describe, it } from 'vitest';
import { type EtcdClusterWorld, etcdClusterWorld } from '../faults/etcd-cluster-world.js';
import { expectExclusive, Scene } from '../faults/scene.js';

/** An election, and a machine that is busy with other tests. */
const FAILOVER_MS_MAX = 40_000;

describe.runIf(available('etcd', { own: true }))('faults of an etcd cluster', { timeout: 240_000 }, () => {
  let world: EtcdClusterWorld;
  const dead = new Set<EtcdNode>();

  beforeAll(async () => {
    world = await etcdClusterWorld();
  });
  const recover = async (): Promise<void> => {
    world.cluster.heal();
    await Promise.all(world.cluster.nodes.map((node) => node.resume()));
    await Promise.all([...dead].map((node) => node.restart()));
    dead.clear();
    await world.cluster.settle();
  };
  afterEach(recover);
  afterAll(() => world?.close());

  const HARM: Readonly<Record<string, (node: EtcdNode) => Promise<void>>> = {
    killed: async (node) => {
      dead.add(node);
      await node.kill();
    },
    paused: (node) => node.pause(),
    'cut off': (node) => world.cluster.cutOff(node),
  };

  it.each(Object.entries(HARM))(
    'the leader is %s, and then a follower, under processes that contend: never two at once, and work goes on',
    async (_name, harm) => {
      const clear: (() => Promise<void>)[] = [];
      const scene = await Scene.open(world, (one) => clear.push(one));
      try {
        const { nodes } = world.cluster;
        const fleet = await Promise.all(
          nodes.map((via, at) =>
            scene.contender(`n${at}`, { via, contenders: 2, ttlMs: 2_000, longMs: 2_500, longEvery: 20 }),
          ),
        );
        await Promise.all(fleet.map((child) => child.more(3)));
        for (const rank of ['leader', 'follower'] as const) {
          const { leader, followers } = await world.cluster.ranks();
          await harm(rank === 'leader' ? leader : (followers[0] as EtcdNode));
          // Also those who came through it go on, through the others.
          await Promise.all(fleet.map((child) => child.more(3, FAILOVER_MS_MAX)));
          await recover();
          await Promise.all(fleet.map((child) => child.more(2, FAILOVER_MS_MAX)));
        }
        expectExclusive(await scene.finish());
      } finally {
        for (const one of clear) await one();
      }
    },
  );
});
