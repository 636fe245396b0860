import {
  available,
  type RedisServer,
  startRedis,
  startRedisCluster,
  startRedisSentinel,
} from 'holdfast-test-servers';
import { Cluster, Redis } from 'ioredis';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { atTheEnd, clearScene } from '../scene.js';
import { accepts, expectGone, isAlive, itIsLikeAllServers, within } from './processes.js';

afterEach(async () => {
  await clearScene();
  vi.unstubAllEnvs();
});

async function start(config?: Readonly<Record<string, string>>): Promise<RedisServer> {
  const server = await startRedis({ own: true, ...(config && { config }) });
  atTheEnd(() => server.stop());
  return server;
}

function connect(url: string): Redis {
  const client = new Redis(url);
  client.on('error', () => undefined);
  atTheEnd(() => client.disconnect());
  return client;
}

describe.runIf(available('redis', { own: true }))('a private Redis', () => {
  it('answers, and is gone after stop, which may be called twice', async () => {
    const server = await start();
    expect(await connect(server.url).ping()).toBe('PONG');
    expect(isAlive(server.pid)).toBe(true);
    await server.stop();
    await server.stop();
    await expectGone(server.pid);
    expect(await accepts(server)).toBe(false);
    await expect(server.restart()).rejects.toThrow('was stopped');
  });

  it('restarts on its port as another process, and has forgotten everything', async () => {
    const server = await start();
    const { pid } = server;
    const client = connect(server.url);
    await client.set('key', 'value');
    await server.restart();
    expect(server.pid).not.toBe(pid);
    expect(await client.get('key')).toBeNull();
  });

  it('remembers through a kill what its configuration made it write', async () => {
    const server = await start({ appendonly: 'yes', appendfsync: 'always' });
    const client = connect(server.url);
    await client.set('key', 'value');
    await server.kill();
    expect(await accepts(server)).toBe(false);
    await server.restart();
    expect(await client.get('key')).toBe('value');
  });

  it('asks for the password of its configuration', async () => {
    const server = await start({ requirepass: 'sesame' });
    expect(await connect(server.url).ping()).toBe('PONG');
    await expect(connect(`redis://${server.host}:${server.port}`).ping()).rejects.toThrow('NOAUTH');
  });

  it('answers nothing while it is paused, and everything afterwards', async () => {
    const server = await start();
    const client = connect(server.url);
    await client.ping();
    await server.pause();
    const reply = client.ping();
    expect(await within(300, reply)).toBe('no answer');
    await server.resume();
    expect(await reply).toBe('PONG');
  });

  itIsLikeAllServers(start);
});

describe.runIf(available('redis', { own: true }))('a server that the user named', () => {
  it('is used as it is, and not ours to stop', async () => {
    const theirs = await start();
    vi.stubEnv('HOLDFAST_TEST_REDIS_URL', theirs.url);
    const server = await startRedis();
    expect(server).toMatchObject({ url: theirs.url, host: theirs.host, port: theirs.port });
    await server.stop();
    await expect(server.kill()).rejects.toThrow('HOLDFAST_TEST_REDIS_URL');
    await expect(server.pause()).rejects.toThrow('own: true');
    expect(() => server.pid).toThrow('HOLDFAST_TEST_REDIS_URL');
    expect(await connect(theirs.url).ping()).toBe('PONG');
    expect((await start()).port).not.toBe(theirs.port);
  });

  it('a binary that a variable names has to be there', () => {
    vi.stubEnv('HOLDFAST_REDIS_SERVER', 'no-such-redis-server');
    expect(() => available('redis', { own: true })).toThrow(
      'HOLDFAST_REDIS_SERVER names no-such-redis-server',
    );
  });
});

describe.runIf(available('redis', { own: true }))('several Redis servers', () => {
  it('a cluster of three serves every slot, also after one of them restarted', async () => {
    const cluster = await startRedisCluster();
    atTheEnd(() => cluster.stop());
    const client = new Cluster(cluster.nodes.map(({ host, port }) => ({ host, port })));
    client.on('error', () => undefined);
    atTheEnd(() => client.disconnect());
    const keys = Array.from({ length: 30 }, (_, index) => `key ${index}`);
    const setAll = async (): Promise<void> => {
      for (const key of keys) expect(await client.set(key, key)).toBe('OK');
    };
    await setAll();
    const held = await Promise.all(cluster.nodes.map(({ url }) => connect(url).dbsize()));
    expect(held.reduce((sum, size) => sum + size)).toBe(keys.length);
    expect(Math.min(...held)).toBeGreaterThan(0);
    await cluster.nodes[1]?.restart();
    await vi.waitFor(setAll, { timeout: 60_000 });
    await cluster.stop();
    for (const { pid } of cluster.nodes) await expectGone(pid);
  });

  it('Sentinels make the replica a master when the master was killed', async () => {
    const { sentinels, masterName: name, master, replica, stop } = await startRedisSentinel();
    atTheEnd(stop);
    const client = new Redis({ sentinels: sentinels.map(({ host, port }) => ({ host, port })), name });
    client.on('error', () => undefined);
    atTheEnd(() => client.disconnect());
    await client.set('key', 'old');
    expect(await client.wait(1, 5000)).toBe(1);
    await master.kill();
    await vi.waitFor(async () => expect(await connect(replica.url).role()).toContain('master'), {
      timeout: 20_000,
      interval: 200,
    });
    await vi.waitFor(async () => expect(await client.set('key', 'new')).toBe('OK'), { timeout: 60_000 });
    expect(await connect(replica.url).get('key')).toBe('new');
    await stop();
    for (const { pid } of [...sentinels, replica]) await expectGone(pid);
  });
});
