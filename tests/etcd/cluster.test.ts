/** Three members of etcd: the leader goes, and locks stay. */
import { createLocks, type Locks, StoreError } from 'holdfast';
import { etcdClient, etcdStore, type FetchLike } from 'holdfast/etcd';
import { NotExecutedError } from 'holdfast/protocol';
import { available, type EtcdCluster, startEtcdCluster } from 'holdfast-test-servers';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../scene.js';
import { ask, claimOf, say } from './store-scene.js';

/** An election takes one to two seconds; a busy machine takes longer. */
const FAILOVER = '40s';

describe.runIf(available('etcd', { own: true }))('a cluster of etcd', () => {
  let cluster: EtcdCluster;
  const opened: Locks[] = [];

  beforeAll(async () => {
    cluster = await startEtcdCluster();
  });
  afterEach(async () => {
    cluster.heal();
    await Promise.all(opened.splice(0).map((locks) => locks.close({ drain: 0 })));
    await cluster.settle();
  });
  afterAll(() => cluster?.stop());

  const locksOn = (owner: string, ...nodes: readonly { readonly url: string }[]): Locks => {
    const store = etcdStore(etcdClient({ endpoints: nodes.map(({ url }) => url) }));
    const locks = createLocks(store, { owner, ttl: '60s' });
    opened.push(locks);
    return locks;
  };

  it('the leader is killed: no grant is lost, a waiter follows the release that comes after', async () => {
    const { leader, followers } = await cluster.ranks();
    const holder = locksOn('holder', leader, ...followers);
    const waiter = locksOn('waiter', leader, ...followers);
    const other = locksOn('other', ...followers);
    const [kept, passed] = [await holder.acquire('kept'), await holder.acquire('passed')];
    const waiting = waiter.acquire('passed', { wait: FAILOVER });
    await until(async () => (await holder.inspect('passed'))?.waiters.length === 1, 'it waits');
    await leader.kill();
    const killedMs = performance.now();
    try {
      // It may meet the leader's death: then it is tried again in the background.
      await passed.release().catch((error: unknown) => expect(error).toBeInstanceOf(StoreError));
      const next = await waiting;
      console.log(
        `etcd: ${Math.round(performance.now() - killedMs)} ms after the leader was killed, the waiter has the lock`,
      );
      expect(next.token).toBeGreaterThan(passed.token);
      await kept.renew();
      expect(kept.held).toBe(true);
      expect(await other.tryAcquire('kept')).toBeNull();
      expect(await other.tryAcquire('passed')).toBeNull();
    } finally {
      await leader.restart();
    }
  });

  it('the leader is cut off from the others: its clients get no answer or another member, and never a lock twice', async () => {
    const { leader, followers } = await cluster.ranks();
    const behind = locksOn('behind', leader);
    const everywhere = locksOn('everywhere', leader, ...followers);
    const beyond = locksOn('beyond', ...followers);
    // All know the keys as they were before.
    for (const locks of [behind, everywhere, beyond]) await (await locks.acquire('free')).release();
    const held = await beyond.acquire('held');
    expect(await behind.tryAcquire('held')).toBeNull();
    await cluster.cutOff(leader);
    const [first] = await Promise.all([
      beyond.acquire('free', { wait: FAILOVER }),
      expect(behind.tryAcquire('free')).rejects.toThrow(StoreError),
      expect(behind.inspect('held')).rejects.toThrow(StoreError),
    ]);
    expect(await everywhere.tryAcquire('held')).toBeNull();
    expect(await everywhere.tryAcquire('free')).toBeNull();
    await first.release();
    const next = await everywhere.acquire('free', { wait: FAILOVER });
    expect(next.token).toBeGreaterThan(first.token);
    cluster.heal();
    await cluster.settle();
    expect(await behind.tryAcquire('free')).toBeNull();
    expect(await behind.tryAcquire('held')).toBeNull();
    expect(held.held).toBe(true);
  });

  it('out of space: the outcome of a write is unknown, and the error says what to do', async () => {
    const [node] = cluster.nodes;
    if (!node) throw new Error('No member.');
    const { header } = await ask<{ header: { member_id: string } }>(node.url, '/v3/maintenance/status');
    const alarm = { memberID: header.member_id, alarm: 'NOSPACE' };
    const store = etcdStore(etcdClient({ endpoints: [node.url] }));
    await say(store, claimOf('before', 'p'));
    await ask(node.url, '/v3/maintenance/alarm', { action: 'ACTIVATE', ...alarm });
    try {
      const error: unknown = await say(store, claimOf('after', 'p')).catch((thrown: unknown) => thrown);
      expect(String(error)).toMatch(/alarm disarm/);
      expect(error).not.toBeInstanceOf(NotExecutedError);
    } finally {
      await ask(node.url, '/v3/maintenance/alarm', { action: 'DEACTIVATE', ...alarm });
      await store.close();
    }
  });

  it('an endpoint that is a learner is left for the next one', async () => {
    const [learner, member] = cluster.nodes;
    if (!learner || !member) throw new Error('No members.');
    const refusal = JSON.stringify({ code: 9, message: 'etcdserver: rpc not supported for learner' });
    const withLearner: FetchLike = async (url, request) =>
      url.startsWith(learner.url) ? new Response(refusal, { status: 400 }) : await fetch(url, request);
    const store = etcdStore(etcdClient({ endpoints: [learner.url, member.url], fetch: withLearner }));
    expect(await say(store, claimOf('beside a learner', 'p'))).toMatchObject({ kind: 'granted' });
    await store.close();
    const alone = etcdStore(etcdClient({ endpoints: [learner.url], fetch: withLearner }));
    await expect(say(alone, claimOf('at a learner', 'p'))).rejects.toThrow(/is a learner/);
    await alone.close();
  });
});
