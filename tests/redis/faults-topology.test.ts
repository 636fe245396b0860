/** More than one Redis: a node of a Cluster stops, a Sentinel makes a replica the master. */
import { createLocks, type Locks, StoreError } from 'holdfast';
import { redisStore } from 'holdfast/redis';
import { available, type RedisServer, startRedisCluster, startRedisSentinel } from 'holdfast-test-servers';
import { Cluster, Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';

const NAMES = Array.from({ length: 18 }, (_, at) => `job-${at}`);

/** Once the rest of a cluster goes on without a node; otherwise all of it stops when one does. */
async function goOnWithoutOne(nodes: readonly RedisServer[]): Promise<void> {
  await askAll(nodes, 'CONFIG', 'SET', 'cluster-require-full-coverage', 'no');
}

async function askAll(
  nodes: readonly RedisServer[],
  command: string,
  ...words: string[]
): Promise<unknown[]> {
  return await Promise.all(
    nodes.map(async ({ url }) => {
      const client = new Redis(url);
      const reply = await client.call(command, ...words);
      client.disconnect();
      return reply;
    }),
  );
}

async function takeAndGive(locks: Locks, name: string): Promise<number> {
  const lease = await locks.acquire(name, { wait: '30s' });
  await lease.release();
  return lease.token;
}

describe.runIf(available('redis')).concurrent('faults of several servers', { timeout: 90_000 }, () => {
  it('Cluster: a node that hangs makes its own keys unknown, and no others; then all go on', async ({
    onTestFinished,
  }) => {
    const cluster = await startRedisCluster();
    onTestFinished(() => cluster.stop());
    await goOnWithoutOne(cluster.nodes);
    const client = new Cluster(cluster.nodes.map(({ host, port }) => ({ host, port })));
    client.on('error', () => undefined);
    const locks = createLocks(redisStore(client), { ttl: '5s' });
    onTestFinished(() => locks.close({ drain: 0 }).finally(() => client.disconnect()));
    const leases = await Promise.all(NAMES.map((name) => locks.acquire(name)));
    const [node] = cluster.nodes;
    const [there] = await askAll(cluster.nodes.slice(0, 1), 'KEYS', '*');
    const isThere = (name: string): boolean =>
      (there as string[]).some((key) => new RegExp(`${name}(?!\\d)`).test(key));
    const lost = NAMES.filter(isThere);
    const kept = NAMES.filter((name) => !isThere(name));
    expect(lost.length).toBeGreaterThan(0);
    expect(kept.length).toBeGreaterThan(0);

    await node?.pause();
    const ended = leases.filter(({ key }) => isThere(key)).map(({ signal }) => aborted(signal));
    await Promise.all(ended);
    // Longer than a lease has passed: those of the other nodes were renewed all the time.
    for (const lease of leases) expect([lease.key, lease.held]).toEqual([lease.key, !isThere(lease.key)]);
    await Promise.all(leases.filter(({ key }) => !isThere(key)).map((lease) => lease.release()));
    await Promise.all(kept.map((name) => takeAndGive(locks, name)));
    for (const name of lost.slice(0, 2)) {
      await expect(locks.acquire(name, { wait: 500 })).rejects.toBeInstanceOf(StoreError);
    }

    await node?.resume();
    await Promise.all(NAMES.map((name) => takeAndGive(locks, name)));
  });

  it('F10, F13: after a failover by Sentinel work resumes by itself, and the token still rises', async ({
    onTestFinished,
  }) => {
    const servers = await startRedisSentinel();
    onTestFinished(() => servers.stop());
    const client = new Redis({
      sentinels: servers.sentinels.map(({ host, port }) => ({ host, port })),
      name: servers.masterName,
    });
    client.on('error', () => undefined);
    const locks = createLocks(redisStore(client), { ttl: '2s' });
    onTestFinished(() => locks.close({ drain: 0 }).finally(() => client.disconnect()));
    const before = await takeAndGive(locks, 'k');
    const held = await locks.acquire('held');
    await servers.master.kill();
    await aborted(held.signal);
    const after = await takeAndGive(locks, 'k');
    expect(after).toBeGreaterThan(before);
    const next = await locks.acquire('held', { wait: '30s' });
    expect(next.token).toBeGreaterThan(held.token);
    next.assertHeld();
    expect((await locks.probe()).findings.length).toBeGreaterThan(0);
  });
});

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
