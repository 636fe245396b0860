/** Whose clock: members whose clocks are hours apart, and one that is set while locks are in use. */
import { createLocks, type Locks } from 'holdfast';
import { etcdClient, etcdStore, type FetchLike } from 'holdfast/etcd';
import { available, type EtcdCluster, type EtcdNode, startEtcdCluster } from 'holdfast-test-servers';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { until } from '../scene.js';
import { ask, claimOf, deleteKey, putValue, say, valuesOf } from './store-scene.js';

const HOUR_MS = 3_600_000;

describe.runIf(available('etcd', { own: true }))('clocks of etcd', () => {
  let cluster: EtcdCluster;
  let right: EtcdNode;
  let ahead: EtcdNode;
  let behind: EtcdNode;
  const offMs = new Map<string, number>();
  const asked: string[] = [];
  const opened: Locks[] = [];
  let prefixes = 0;
  let prefix = '';

  beforeAll(async () => {
    cluster = await startEtcdCluster();
    [right, ahead, behind] = cluster.nodes as [EtcdNode, EtcdNode, EtcdNode];
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((locks) => locks.close({ drain: 0 })));
    await cluster.settle();
  });
  afterAll(() => cluster?.stop());

  /** A member's clock is off: its replies are its own, but for the time in them. */
  const withOff: FetchLike = async (url, request) => {
    asked.push(new URL(url).origin);
    const response = await fetch(url, request);
    const shiftMs = offMs.get(new URL(url).origin) ?? 0;
    const date = Date.parse(response.headers.get('date') ?? '');
    const get = (name: string): string | null =>
      name === 'date' ? new Date(date + shiftMs).toUTCString() : response.headers.get(name);
    return { status: response.status, body: response.body, text: () => response.text(), headers: { get } };
  };

  const storeOn = (...nodes: readonly EtcdNode[]) =>
    etcdStore(etcdClient({ endpoints: nodes.map(({ url }) => url), fetch: withOff }), { prefix });

  const locksOn = (...nodes: readonly EtcdNode[]): Locks => {
    const locks = createLocks(storeOn(...nodes), { ttl: '60s' });
    opened.push(locks);
    return locks;
  };

  /** The clock of the right one counts: it is the first to be heard. */
  const newPlace = async (): Promise<void> => {
    prefix = `clocks-${prefixes++}/`;
    offMs.clear();
    offMs.set(ahead.url, HOUR_MS);
    offMs.set(behind.url, -HOUR_MS);
    await (await locksOn(right).acquire('free')).release();
  };

  /** The least that a member's clock is ahead by, as it is stored; null while it is not. */
  const storedOffsetOf = async ({ url }: EtcdNode): Promise<number | null> => {
    const { header } = await ask<{ header: { member_id: string } }>(url, '/v3/maintenance/status');
    const text = (await valuesOf(right.url, `${prefix}clock/`)).get(`${prefix}clock/${header.member_id}`);
    return text === undefined ? null : ((JSON.parse(text) as number[])[0] ?? null);
  };

  const expectTakenFromNobody = async (key: string): Promise<void> => {
    for (const nodes of [[right], [ahead], [behind], [ahead, behind], [behind, right]]) {
      const names = nodes.map((node) => cluster.nodes.indexOf(node)).join();
      expect(await locksOn(...nodes).tryAcquire(key), `members ${names}`).toBeNull();
    }
  };

  it('F11: an hour apart: a process with replies of only one of them takes no lock that is held', async () => {
    await newPlace();
    for (const [at, nodes] of [[right, ahead, behind], [ahead], [behind]].entries()) {
      const lease = await locksOn(...nodes).acquire(`held ${at}`);
      await expectTakenFromNobody(`held ${at}`);
      expect(lease.held).toBe(true);
    }
  });

  it('F11: a lease that is over is taken by a process with replies of another member, and not before', async () => {
    await newPlace();
    const pairs = [
      [ahead, behind],
      [behind, ahead],
      [right, ahead],
    ] as const;
    await Promise.all(
      pairs.map(async ([of, by], at) => {
        const [holder, taker] = [storeOn(of), storeOn(by)];
        const claim = claimOf(`short ${at}`, 'holder', { ttlMs: 1_000 });
        const sentMs = performance.now();
        const granted = await say(holder, claim);
        if (granted.kind !== 'granted') throw new Error(`It was answered ${JSON.stringify(granted)}.`);
        const endsMs = sentMs + granted.expiresAt - granted.now;
        const other = claimOf(claim.key, 'taker');
        await until(async () => (await say(taker, other)).kind === 'granted', 'it is taken');
        expect(performance.now()).toBeGreaterThanOrEqual(endsMs);
        await Promise.all([holder.close(), taker.close()]);
      }),
    );
  });

  it('the first member to count is gone: the others count by what was stored of them', async () => {
    await newPlace();
    const holder = locksOn(right, ahead, behind);
    const lease = await holder.acquire('held');
    await until(async () => (await valuesOf(ahead.url, `${prefix}clock/`)).size === 3, 'all are compared');
    await right.kill();
    try {
      for (const nodes of [[ahead], [behind], [right, ahead]]) {
        const locks = locksOn(...nodes);
        await until(
          () =>
            locks.tryAcquire('held').then(
              (taken) => {
                expect(taken).toBeNull();
                return true;
              },
              () => false,
            ),
          'the rest has a leader',
        );
      }
      expect(lease.held).toBe(true);
    } finally {
      await right.restart();
    }
  });

  it('one member’s clock is set while locks are in use: the majority decides, and its new offset is stored', async () => {
    await newPlace();
    const holder = locksOn(right, ahead, behind);
    const lease = await holder.acquire('held');
    await until(async () => (await storedOffsetOf(ahead)) !== null, 'it is compared');
    expect(await storedOffsetOf(ahead)).toBeGreaterThan(HOUR_MS / 2);
    offMs.set(ahead.url, 3 * HOUR_MS);
    const onlyAhead = storeOn(ahead, right, behind);
    expect(await say(onlyAhead, claimOf('default/held', 'thief'))).toMatchObject({ kind: 'busy' });
    await until(async () => ((await storedOffsetOf(ahead)) ?? 0) > 2.5 * HOUR_MS, 'the new offset is stored');
    await lease.renew();
    await expectTakenFromNobody('held');
    await onlyAhead.close();
  });

  it('two clocks that contradict each other, without a third: nobody gets a lock, and the error says why', async () => {
    await newPlace();
    await (await locksOn(right, ahead).acquire('free')).release();
    await until(async () => (await storedOffsetOf(ahead)) !== null, 'it is compared');
    offMs.set(ahead.url, 5 * HOUR_MS);
    const locks = locksOn(right, ahead);
    await expect(locks.tryAcquire('free')).rejects.toThrow(/contradict each other/);
  });

  it('the stored offsets are gone: no write counts by the old ones', async () => {
    await newPlace();
    const locks = locksOn(right);
    await (await locks.acquire('free')).release();
    const before = (await valuesOf(right.url, `${prefix}clock`)).get(`${prefix}clock`);
    for (const key of (await valuesOf(right.url, `${prefix}clock`)).keys()) await deleteKey(right.url, key);
    await (await locks.acquire('free', { wait: '30s' })).release();
    const after = (await valuesOf(right.url, `${prefix}clock`)).get(`${prefix}clock`);
    expect(after).toBeDefined();
    expect(after).not.toBe(before);
  });

  it('clocks drift: a process in use asks all members again after some minutes', async () => {
    await newPlace();
    const locks = locksOn(right, ahead, behind);
    await (await locks.acquire('free')).release();
    await until(async () => (await valuesOf(right.url, `${prefix}clock/`)).size === 3, 'all are compared');
    // As if two minutes had passed, here and there.
    const passedMs = 120_000;
    for (const { url } of cluster.nodes) offMs.set(url, (offMs.get(url) ?? 0) + passedMs);
    const [monotonic, wall] = [performance.now.bind(performance), Date.now.bind(Date)];
    vi.spyOn(performance, 'now').mockImplementation(() => monotonic() + passedMs);
    vi.spyOn(Date, 'now').mockImplementation(() => wall() + passedMs);
    try {
      asked.length = 0;
      await until(async () => {
        await (await locks.acquire('free')).release();
        return cluster.nodes.every(({ url }) => asked.includes(url));
      }, 'all were asked');
    } finally {
      vi.restoreAllMocks();
    }
  });

  it('keys of other software beside the offsets, and values that are none, are left alone', async () => {
    prefix = `clocks-${prefixes++}/`;
    offMs.clear();
    for (const [name, value] of [
      ['clock-service/x', 'theirs'],
      ['clock/other', 'theirs'],
      ['clock/other/k', '[1,1]'],
    ]) {
      await putValue(right.url, `${prefix}${name}`, value ?? '');
    }
    await (await locksOn(right).acquire('free')).release();
    expect((await valuesOf(right.url, `${prefix}clock`)).get(`${prefix}clock/other`)).toBe('theirs');
  });

  it('a proxy that answers with headers of its own is reported', async () => {
    await newPlace();
    const proxied: FetchLike = async (url, request) => {
      const response = await fetch(url, request);
      const get = (name: string): string | null => (name === 'server' ? 'nginx' : response.headers.get(name));
      return { status: response.status, body: response.body, text: () => response.text(), headers: { get } };
    };
    const findingsOf = async (through: FetchLike): Promise<string> => {
      const store = etcdStore(etcdClient({ endpoints: [right.url], fetch: through }), { prefix });
      const { findings } = await store.probe();
      await store.close();
      return JSON.stringify(findings);
    };
    expect(await findingsOf(proxied)).toMatch(/A proxy answers at/);
    expect(await findingsOf(withOff)).not.toMatch(/A proxy answers at/);
  });

  it('replies without the header Date are refused, in words', async () => {
    await newPlace();
    const timeless: FetchLike = async (url, request) => {
      const response = await fetch(url, request);
      const { status, body } = response;
      return { status, body, text: () => response.text(), headers: { get: () => null } };
    };
    const store = etcdStore(etcdClient({ endpoints: [right.url], fetch: timeless }), { prefix });
    await expect(say(store, claimOf('k', 'p'))).rejects.toThrow(/no Date header/);
  });
});
