import { available, type RedisServer, startRedis } from 'holdfast-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLocks } from '../../packages/holdfast/src/locks.js';
import { openRedis } from '../../packages/holdfast/src/open-store/redis.js';
import { REDIS_CLIENTS } from '../../packages/holdfast/src/open-store/redis-clients.js';
import { blocks } from '../repository/markdown.js';

describe.runIf(available('redis'))('the rights that docs/stores/redis.md asks for are enough', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis({ own: true });
    const line = blocks.find(
      ({ page, code }) => page === 'docs/stores/redis.md' && /^ACL SETUSER/.test(code),
    );
    const [command = '', ...words] = line?.code.trim().split(/\s+/) ?? [];
    const admin = new Redis(server.port, server.host);
    await admin.call(command, ...words);
    admin.disconnect();
  });
  afterAll(async () => server?.stop());

  it.each(REDIS_CLIENTS.map(({ name }) => name))('with %s', async (name) => {
    const clients = REDIS_CLIENTS.filter((candidate) => candidate.name === name);
    const rest = `//locks:PASSWORD@${server.host}:${server.port}/1`;
    const [one, two] = [await openRedis('redis', rest, clients), await openRedis('redis', rest, clients)];
    const [first, second] = [createLocks(one), createLocks(two)];
    const lease = await first.acquire('job');
    const met = new Promise((resolve) => second.on('contended', resolve));
    const waiting = second.acquire('job');
    await met;
    const keys: string[] = [];
    for await (const { key } of second.list()) keys.push(key);
    expect(keys).toEqual(['job']);
    await lease.release();
    const next = await waiting;
    expect(next.token).toBeGreaterThan(lease.token);
    const { findings } = await second.probe();
    expect(findings.filter(({ text }) => /publish|listening/i.test(text))).toEqual([]);
    await first.close();
    await second.close();
  });
});
