/** Servers of a quorum that are killed, paused, cut off and emptied. */
import { InvalidArgumentError, type Lease, StoreError } from 'holdfast';
import { enrolMembers, quorumStore } from 'holdfast/quorum';
import { available, startProxy } from 'holdfast-test-servers';
import { describe, expect, it } from 'vitest';
import { until } from '../scene.js';
import { PREFIX, QuorumScene, SAFE } from './store-scene.js';

const SOON_MS = 60_000;

async function turn(locks: ReturnType<QuorumScene['locks']>, key: string): Promise<number> {
  const lease = await locks.acquire(key, { wait: SOON_MS });
  await lease.release();
  return lease.token;
}

/** How many servers have a record of the key. */
async function copiesOf({ clients }: QuorumScene, key: string): Promise<number> {
  const found = await Promise.all(clients.map((client) => client.keys(`${PREFIX}key:*${key}`)));
  return found.flat().length;
}

describe.runIf(available('redis', { own: true }))('a quorum of Redis servers', { timeout: 120_000 }, () => {
  it.each([
    [3, 1],
    [5, 2],
  ])('of %i goes on while %i are killed, and while they are paused', async (count, lost) => {
    const clear: (() => Promise<void>)[] = [];
    const scene = await QuorumScene.open((one) => clear.push(one), count);
    try {
      const [first, second] = [scene.locks(), scene.locks()];
      let last = await turn(first, 'k');
      for (const server of scene.servers.slice(0, lost)) await server.pause();
      for (const locks of [first, second, first]) {
        const token = await turn(locks, 'k');
        expect(token).toBeGreaterThan(last);
        last = token;
      }
      for (const server of scene.servers) await server.resume();
      const held = await second.acquire('held', { wait: SOON_MS });
      for (const server of scene.servers.slice(0, lost)) await server.kill();
      expect(await turn(first, 'k')).toBeGreaterThan(last);
      expect(await first.tryAcquire('held')).toBeNull();
      await held.renew();
      expect((await first.inspect('held'))?.holders.map(({ token }) => token)).toEqual([held.token]);
      await held.release();
      expect((await first.acquire('held', { wait: SOON_MS })).token).toBeGreaterThan(held.token);
    } finally {
      for (const one of clear) await one();
    }
  });

  it('of which a majority is lost says so, and hangs nowhere; then the lease lives on', async ({
    onTestFinished,
  }) => {
    const scene = await QuorumScene.open(onTestFinished, 3, SAFE);
    const [holder, other] = [scene.locks({ ttlMs: 120_000 }), scene.locks({ ttlMs: 2_000 })];
    const lease = await holder.acquire('held');
    await turn(other, 'free');
    const [a, b] = scene.servers;
    await Promise.all([a?.kill(), b?.kill()]);
    await until(
      () => scene.clients.filter(({ status }) => status !== 'ready').length === 2,
      'the loss is noticed',
    );
    const refusal = await other.tryAcquire('never').catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(StoreError);
    await expect(other.tryAcquire('never')).rejects.toThrow(
      /2 of 3 servers of the quorum cannot be used now, and 2 are needed/,
    );
    await expect(other.acquire('free', { wait: 1_000 })).rejects.toBeInstanceOf(StoreError);
    await expect(other.inspect('held')).rejects.toBeInstanceOf(StoreError);
    lease.assertHeld();
    await Promise.all([a?.restart(), b?.restart()]);
    await until(() => scene.clients.every(({ status }) => status === 'ready'), 'all are connected');
    await expect(enrolMembers(scene.clients)).rejects.toThrow(/only 1 of 3 servers have certainly kept/);
    await scene.enrolAllAgain();
    await until(async () => {
      const renewed = await lease.renew().then(
        () => true,
        (error: unknown) => !(error instanceof StoreError),
      );
      return renewed;
    }, 'the lease is renewed');
    lease.assertHeld();
    // Its own connections come back when they do.
    await turn(other, 'free');
    expect(await other.tryAcquire('held')).toBeNull();
  });

  it('of which a majority is paused gives up in time', async ({ onTestFinished }) => {
    const scene = await QuorumScene.open(onTestFinished);
    const locks = scene.locks({ ttlMs: 1_000 });
    await turn(locks, 'k');
    await Promise.all(scene.servers.slice(1).map((server) => server.pause()));
    await expect(locks.tryAcquire('k')).rejects.toBeInstanceOf(StoreError);
    await expect(locks.inspect('k')).rejects.toBeInstanceOf(StoreError);
    await Promise.all(scene.servers.map((server) => server.resume()));
    await turn(locks, 'k');
  });

  it('two processes, each cut off from another server, exclude each other', async ({ onTestFinished }) => {
    const scene = await QuorumScene.open(onTestFinished);
    const proxies = await Promise.all(scene.servers.map((server) => startProxy(server)));
    onTestFinished(async () => void (await Promise.all(proxies.map((proxy) => proxy.stop()))));
    const [a, b, c] = scene.servers;
    const [cutA, , cutC] = proxies;
    if (!a || !b || !c || !cutA || !cutC) throw new Error('No servers.');
    const left = scene.locks({ targets: [cutA, b, c] });
    const right = scene.locks({ targets: [a, b, cutC] });
    await turn(left, 'k');
    await turn(right, 'k');
    cutA.hang();
    cutC.cut();
    let last = 0;
    let inside = 0;
    const work = async (lease: Lease): Promise<void> => {
      inside += 1;
      expect(inside).toBe(1);
      expect(lease.token).toBeGreaterThan(last);
      last = lease.token;
      await new Promise((resolve) => setTimeout(resolve, 5));
      inside -= 1;
    };
    for (let round = 0; round < 10; round++) {
      await Promise.all([left, right].map((locks) => locks.withLock('k', work, { wait: SOON_MS })));
    }
    // A reply that is lost leaves the outcome open, and the next attempt finds out.
    cutA.pass();
    cutA.loseReplies(3);
    for (let round = 0; round < 5; round++) await left.withLock('k', work, { wait: SOON_MS });
  });

  it('F13: a restarted server that wrote every change to disk votes again when it is enrolled, and leases live on', async ({
    onTestFinished,
  }) => {
    const scene = await QuorumScene.open(onTestFinished, 3, SAFE);
    const locks = scene.locks({ ttlMs: 120_000 });
    const lease = await locks.acquire('held');
    const [a, , c] = scene.servers;
    await a?.kill();
    await a?.restart();
    await until(() => scene.clients[0]?.status === 'ready', 'it is connected');
    expect(await enrolledIn(scene)).toBe(2);
    await turn(locks, 'k');
    expect(await enrolledIn(scene)).toBe(2);
    expect(await enrolMembers(scene.clients)).toEqual({ enrolled: [1], isNew: false });
    await c?.kill();
    await turn(locks, 'k');
    await lease.renew();
  });

  it('an enrolment that was broken off is completed by the next', async ({ onTestFinished }) => {
    const scene = await QuorumScene.open(onTestFinished);
    const key = `${PREFIX}member`;
    const [first, second, third] = scene.clients;
    const asNoted = async (client: typeof first) => {
      await client?.hset(key, 'run', `noted:${await client.hget(key, 'run')}`);
    };
    // All have noted it, and one votes.
    await asNoted(second);
    await asNoted(third);
    expect(await enrolMembers(scene.clients)).toEqual({ enrolled: [2, 3], isNew: false });
    // Two have noted it, and none votes.
    await asNoted(first);
    await asNoted(second);
    await third?.del(key);
    const other = quorumStore(scene.connect());
    await expect(other.read('k')).rejects.toThrow(/not enrolled in a quorum/);
    await other.close();
    expect(await enrolMembers(scene.clients)).toEqual({ enrolled: [1, 2, 3], isNew: true });
    await turn(scene.locks(), 'k');
  });

  it('a server that is reached under two names later on has one vote', async ({ onTestFinished }) => {
    const scene = await QuorumScene.open(onTestFinished);
    const [a, b, c] = scene.servers;
    if (!a || !b || !c) throw new Error('No servers.');
    const [first, again] = [await startProxy(a), await startProxy(b)];
    onTestFinished(async () => void (await Promise.all([first, again].map((proxy) => proxy.stop()))));
    const clients = scene.connect([first, b, c]);
    const store = quorumStore(clients);
    onTestFinished(() => store.close());
    expect(await store.read('k')).toBeNull();
    const [moved] = clients;
    if (!moved) throw new Error('No client.');
    moved.options.port = again.port;
    moved.disconnect(true);
    await until(() => moved.status === 'ready', 'it is connected to the second server');
    await c.kill();
    await until(async () => {
      const error = await store.read('k').then(String, String);
      return /it is the same as server \d: pass each server once/.test(error);
    }, 'it is found out');
  });

  it('F13: a server that came back without its data, or with an old snapshot, does not vote until it is enrolled again', async ({
    onTestFinished,
  }) => {
    const scene = await QuorumScene.open(onTestFinished);
    const [a, b, c] = scene.servers;
    const holder = scene.locks({ ttlMs: 120_000 });
    // Only the first two have accepted the grant.
    await c?.pause();
    const lease = await holder.acquire('held');
    await scene.clients[0]?.call('SAVE');
    await a?.kill();
    await c?.resume();
    await a?.restart();
    await until(async () => {
      const [client] = scene.clients;
      return client?.status === 'ready' && (await client.exists(`${PREFIX}member`)) === 1;
    }, 'it has loaded its snapshot');
    const other = scene.locks();
    const findings = (await quorumStore(scene.connect()).probe()).findings.map(({ text }) => text).join('\n');
    expect(findings).toMatch(/server 1: It does not vote: restarted/);
    expect(findings).toMatch(/appendonly yes, appendfsync always/);
    // Two of three vote: without the second one, nothing can be decided.
    expect(await other.tryAcquire('held')).toBeNull();
    await b?.pause();
    await expect(other.tryAcquire('held')).rejects.toBeInstanceOf(StoreError);
    await b?.resume();
    expect(await enrolMembers(scene.clients)).toEqual({ enrolled: [1], isNew: false });
    expect(await copiesOf(scene, 'held')).toBeGreaterThanOrEqual(2);
    // Now the one that had the grant alone may go.
    await b?.kill();
    expect(await other.tryAcquire('held')).toBeNull();
    await lease.renew();
    await lease.release();
    expect(await turn(other, 'held')).toBeGreaterThan(lease.token);
  });

  it('is enrolled once, by all servers, in one order, and says what is wrong otherwise', async ({
    onTestFinished,
  }) => {
    const scene = await QuorumScene.open(onTestFinished);
    expect(await enrolMembers(scene.connect())).toEqual({ enrolled: [], isNew: false });
    await expect(enrolMembers(scene.connect().toReversed())).rejects.toThrow(/keep the order of the servers/);
    const [a] = scene.servers;
    if (!a) throw new Error('No server.');
    const twice = quorumStore(scene.connect([a, a, a]));
    await expect(twice.read('k')).rejects.toThrow(/it is the same as server \d: pass each server once/);
    await twice.close();
    const [first] = scene.clients;
    if (!first) throw new Error('No client.');
    for (const clients of [[], [first], scene.clients.slice(0, 2), [first, first, first]]) {
      expect(() => quorumStore(clients)).toThrow(InvalidArgumentError);
    }
    await Promise.all(scene.clients.slice(1).map((client) => client.flushall()));
    await expect(enrolMembers(scene.clients)).rejects.toThrow(
      /only 1 of 3 servers have certainly kept their data/,
    );
    await a.kill();
    await expect(enrolMembers(scene.clients)).rejects.toThrow(/server 1 does not answer/);
    const other = quorumStore(scene.connect());
    await expect(other.read('k')).rejects.toThrow(/server \d: not enrolled in a quorum/);
    await other.close();
  });

  it('lists the locks that a majority knows, and keeps no record for a key that was only looked at', async ({
    onTestFinished,
  }) => {
    const scene = await QuorumScene.open(onTestFinished);
    const locks = scene.locks();
    await scene.servers[0]?.pause();
    for (const name of ['b', 'a', 'c']) await locks.acquire(name);
    await scene.servers[0]?.resume();
    const keys: string[] = [];
    for await (const { key } of locks.list({ prefix: '' })) keys.push(key);
    expect(keys).toEqual(['a', 'b', 'c']);
    expect(await locks.inspect('never-used')).toBeNull();
    const stored = await Promise.all(scene.clients.map((client) => client.keys('*never-used*')));
    expect(stored.flat()).toEqual([]);
  });

  /** How many servers vote, as a new process sees it. */
  async function enrolledIn(scene: QuorumScene): Promise<number> {
    const store = quorumStore(scene.connect());
    const { findings } = await store.probe();
    await store.close();
    return (
      scene.servers.length - findings.filter(({ text }) => /does not vote|cannot be used/.test(text)).length
    );
  }
});
