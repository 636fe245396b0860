/** Processes that were given more or fewer servers than were enrolled. They count another majority, so no server may answer them. */
import { createLocks, StoreError } from 'holdfast';
import { enrolMembers, quorumStore } from 'holdfast/quorum';
import { available, type ProxyTarget } from 'holdfast-test-servers';
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { PREFIX, QuorumScene } from './store-scene.js';

const ENROLMENT = `${PREFIX}member`;
/** Nothing listens there. */
const AWAY: ProxyTarget = { host: '127.0.0.1', port: 1 };

type Clean = Parameters<typeof QuorumScene.open>[0];

/** Five servers, of which the first three are enrolled. */
async function threeOfFive(onTestFinished: Clean): Promise<QuorumScene> {
  const scene = await QuorumScene.open(onTestFinished, 5);
  await Promise.all(scene.clients.map((client) => client.flushall()));
  await enrolMembers(scene.clients.slice(0, 3));
  return scene;
}

/** The first three servers, without the third; and all five, without the first two. Each is a majority. */
function halvesOf({ servers }: QuorumScene): { ofThree: ProxyTarget[]; ofFive: ProxyTarget[] } {
  return { ofThree: [...servers.slice(0, 2), AWAY], ofFive: [AWAY, AWAY, ...servers.slice(2)] };
}

/** All that every server has stored about a key, and its enrolment. */
async function storedIn({ clients }: QuorumScene, key: string) {
  return await Promise.all(
    clients.map(async (client) => ({
      records: await client.keys(`*${key}*`),
      enrolment: await client.hgetall(ENROLMENT),
    })),
  );
}

describe.runIf(available('redis', { own: true }))('the number of servers', { timeout: 120_000 }, () => {
  it('one server passed twice is named when it is to be enrolled', async ({ onTestFinished }) => {
    const scene = await QuorumScene.open(onTestFinished);
    await Promise.all(scene.clients.map((client) => client.flushall()));
    const [one, two] = scene.servers;
    if (!one || !two) throw new Error('No servers.');
    const wrong = scene.connect([one, one, two]);
    await expect(enrolMembers(wrong)).rejects.toThrow(
      /server 2 is the same as server 1: pass each server once/,
    );
    // With the right list it works.
    expect((await enrolMembers(scene.clients)).enrolled).toEqual([1, 2, 3]);
  });

  it('databases of one server count, and probe warns that they are lost together', async ({
    onTestFinished,
  }) => {
    const scene = await QuorumScene.open(onTestFinished);
    const [{ url } = { url: '' }, other] = scene.servers;
    const databases = [1, 2].map((db) => new Redis(url, { db }));
    onTestFinished(() => databases.forEach((client) => void client.disconnect()));
    const clients = [...databases, ...scene.connect(other ? [other] : [])];
    await enrolMembers(clients, { prefix: 'one:' });
    const store = quorumStore(clients, { prefix: 'one:' });
    const texts = (await store.probe()).findings.map(({ level, text }) => `${level} ${text}`).join('\n');
    expect(texts).toMatch(/^warning Servers 1 and 2 are one Redis server: when that one is lost/);
    expect(texts).not.toMatch(/servers may be lost/);
    await store.close();
  });

  it('cannot grow: five servers are not enrolled where three are, and a process with five gets no lock', async ({
    onTestFinished,
  }) => {
    const scene = await threeOfFive(onTestFinished);
    const before = await storedIn(scene, 'report');
    await expect(enrolMembers(scene.clients)).rejects.toThrow(
      /enrolled with 3 servers, and 5 were given: pass the same ones, in the same order\. .*delete the key "holdfast-quorum:member"/,
    );
    expect(await storedIn(scene, 'report')).toEqual(before);
    const { ofThree, ofFive } = halvesOf(scene);
    await expect(scene.locks({ targets: ofFive }).tryAcquire('report')).rejects.toBeInstanceOf(StoreError);
    await expect(scene.locks().tryAcquire('report')).rejects.toThrow(
      /this quorum was enrolled with 3 servers, and 5 were given/,
    );
    expect(await storedIn(scene, 'report')).toEqual(before);
    expect(await scene.locks({ targets: ofThree }).tryAcquire('report')).not.toBeNull();
  });

  it('cannot shrink: a process with three servers of five gets no lock, and cannot enrol them', async ({
    onTestFinished,
  }) => {
    const scene = await QuorumScene.open(onTestFinished, 5);
    const before = await storedIn(scene, 'report');
    await expect(enrolMembers(scene.clients.slice(0, 3))).rejects.toThrow(
      /enrolled with 5 servers, and 3 were given/,
    );
    const { ofThree, ofFive } = halvesOf(scene);
    for (const targets of [ofThree, scene.servers.slice(0, 3)]) {
      await expect(scene.locks({ targets }).tryAcquire('report')).rejects.toThrow(
        /this quorum was enrolled with 5 servers, and 3 were given/,
      );
    }
    expect(await storedIn(scene, 'report')).toEqual(before);
    expect(await scene.locks({ targets: ofFive }).tryAcquire('report')).not.toBeNull();
  });

  it('is checked with every request: processes that run while the servers are enrolled as five are refused', async ({
    onTestFinished,
  }) => {
    const scene = await threeOfFive(onTestFinished);
    const { ofThree, ofFive } = halvesOf(scene);
    const locks = scene.locks({ ttlMs: 1_000, targets: ofThree });
    const lease = await locks.acquire('report');
    await lease.release();
    await scene.enrolAllAgain();
    const before = await storedIn(scene, 'other');
    await expect(locks.tryAcquire('report')).rejects.toThrow(/enrolled with 5 servers, and 3 were given/);
    await expect(locks.tryAcquire('other')).rejects.toBeInstanceOf(StoreError);
    expect(await storedIn(scene, 'other')).toEqual(before);
    expect(await scene.locks({ targets: ofFive }).tryAcquire('report')).not.toBeNull();
  });

  it('changes with a new quorum under another prefix; processes of the old one get no lock any more', async ({
    onTestFinished,
  }) => {
    const scene = await threeOfFive(onTestFinished);
    const forgotten = scene.locks({ ttlMs: 1_000, targets: scene.servers.slice(0, 3) });
    const lease = await forgotten.acquire('report');
    await lease.release();
    await Promise.all(scene.clients.map((client) => client.del(ENROLMENT)));
    const options = { prefix: 'holdfast-quorum-5:' };
    expect(await enrolMembers(scene.clients, options)).toEqual({ enrolled: [1, 2, 3, 4, 5], isNew: true });
    await expect(forgotten.tryAcquire('other')).rejects.toThrow(/not enrolled in a quorum/);
    // A token is ahead of the time by as much as the time is in doubt, and the new quorum knows nothing but the time.
    await expect.poll(() => Date.now() * 1_000).toBeGreaterThan(lease.token);
    const locks = createLocks(quorumStore(scene.clients, options));
    onTestFinished(() => locks.close({ drain: 0 }));
    expect((await locks.acquire('report')).token).toBeGreaterThan(lease.token);
  });

  it('is kept when a server that lost its data is enrolled again', async ({ onTestFinished }) => {
    const scene = await QuorumScene.open(onTestFinished, 5);
    const locks = scene.locks();
    const lease = await locks.acquire('report');
    await scene.clients[4]?.flushall();
    expect(await enrolMembers(scene.clients)).toEqual({ enrolled: [5], isNew: false });
    const { ofFive } = halvesOf(scene);
    expect(await scene.locks({ targets: ofFive }).tryAcquire('report')).toBeNull();
    await lease.renew();
  });

  it('is part of an enrolment: one without it does not count, and is made again', async ({
    onTestFinished,
  }) => {
    const scene = await QuorumScene.open(onTestFinished);
    await Promise.all(
      scene.clients.map(async (client, index) => {
        await client.hdel(ENROLMENT, 'seat');
        await client.hset(ENROLMENT, { quorum: 'old', place: index + 1 });
      }),
    );
    await expect(scene.locks().tryAcquire('report')).rejects.toThrow(/not enrolled in a quorum/);
    expect(await enrolMembers(scene.clients)).toEqual({ enrolled: [1, 2, 3], isNew: true });
    expect(await scene.locks().tryAcquire('report')).not.toBeNull();
  });
});
