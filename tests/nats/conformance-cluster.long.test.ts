/** Three servers, three replicas: the whole suite, and what probe says of it. */
import type { NatsConnection } from '@nats-io/transport-node';
import { natsStore } from 'holdfast/nats';
import type { Claim } from 'holdfast/protocol';
import { available, type NatsCluster, startNatsCluster } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { api, claimOf, connectTo, harnessOf, openStore, releaseOf, runSuite, say } from './store-scene.js';

describe.runIf(available('nats'))('three NATS servers', () => {
  let cluster: NatsCluster;
  let plain: NatsConnection;

  beforeAll(async () => {
    cluster = await startNatsCluster();
    plain = await connectTo(...cluster.urls);
    // A new bucket has no leader until its servers have elected one: a bare store says so, and locks ask again.
    const store = natsStore(plain, { replicas: 3 });
    const isElected = () => say(store, { kind: 'evict', key: 'none', upToToken: 0 });
    await vi.waitFor(isElected, { timeout: 60_000, interval: 100 });
  }, 60_000);

  afterAll(async () => {
    await plain?.close();
    await cluster?.stop();
  });

  runSuite(
    harnessOf(
      'NATS cluster',
      () => cluster.urls,
      () => plain,
      { replicas: 3 },
    ),
    100,
    { when: 'long-run' },
  );

  it('P8: of three updates of one revision at the same moment one succeeds, on servers that let two pass too', async () => {
    const stores = await Promise.all(cluster.urls.map((url) => openStore([url], { replicas: 3 })));
    const kinds: string[] = [];
    for (let round = 0; round < 60; round++) {
      const claims = stores.map((_, index) =>
        claimOf('race', `p${index}`, { queue: false, hold: { process: `p${index}`, number: round + 1 } }),
      );
      const replies = await Promise.all(stores.map((store, index) => say(store, claims[index] as Claim)));
      kinds.push(
        replies
          .map(({ kind }) => kind)
          .toSorted()
          .join(),
      );
      // By all of them: each has seen the record as it is now, and guesses the same revision.
      await Promise.all(stores.map((store, index) => say(store, releaseOf(claims[index] as Claim))));
      await Promise.all(stores.map((store) => say(store, { kind: 'evict', key: 'race', upToToken: 0 })));
    }
    expect(new Set(kinds)).toEqual(new Set(['busy,busy,granted']));
    await Promise.all(stores.map((store) => store.close()));
  });

  it('probe tells three replicas from one', async () => {
    const three = await natsStore(plain, { replicas: 3 }).probe();
    expect(three.server).toMatch(/^NATS 2\.\d+\.\d+, cluster /);
    expect(three.findings.map(({ text }) => text).join(' ')).toMatch(
      /on a majority of 3 servers before it is answered/,
    );
    const one = await natsStore(plain, { bucket: 'single' }).probe();
    const warning = one.findings.find(({ level }) => level === 'warning');
    expect(warning?.text).toMatch(/one copy, though the servers form a cluster/);
  });

  it('a lock outlives the server that led its bucket, and is renewed through another', {
    timeout: 90_000,
  }, async () => {
    const store = natsStore(plain, { bucket: 'leaders', replicas: 3 });
    const claim = claimOf('k', 'p', { ttlMs: 80_000 });
    const granted = await say(store, claim);
    if (granted.kind !== 'granted') throw new Error(granted.kind);
    const leader = (await api(plain, 'STREAM.INFO.KV_leaders')).cluster?.leader;
    const node = cluster.nodes.find(({ name }) => name === leader);
    if (!node) throw new Error(`no leader among the nodes: ${leader}`);
    await node.kill();
    const renew = { kind: 'renew', key: 'k', hold: claim.hold, ttlMs: 80_000, block: false } as const;
    const deadline = performance.now() + 40_000;
    let kind = '';
    while (kind !== 'renewed' && performance.now() < deadline) {
      // Nobody leads meanwhile: unknown, and never taken for lost.
      kind = await say(store, renew).then(
        (reply) => reply.kind,
        () => 'unknown',
      );
      expect(['renewed', 'unknown']).toContain(kind);
      if (kind === 'unknown') await new Promise((resolve) => setTimeout(resolve, 200));
    }
    expect(kind).toBe('renewed');
    expect((await say(store, claimOf('k', 'other', { queue: false }))).kind).toBe('busy');
    expect(await say(store, releaseOf(claim))).toMatchObject({ kind: 'released', held: true });
    await node.restart();
    await cluster.settle();
    await store.close();
  });
});
