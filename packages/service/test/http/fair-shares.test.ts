/** What one tenant looks at costs the others little, however often and however much it looks. */
import { memoryStore } from 'holdfast/memory';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createAuth } from '../../src/auth/index.js';
import { bearer, keyFile } from '../auth/issuer.js';
import { type Answer, clearScene, listen, pause, type Stage, stage, until } from '../scene.js';

afterEach(clearScene);

async function twoTenants(store = memoryStore()) {
  const { path, keys } = await keyFile({ eve: ['lock:eve'], ann: ['lock:ann'] });
  const scene = await stage({ store, auth: createAuth({ apiKeys: path }) });
  return { ...scene, eve: bearer(keys.eve), ann: bearer(keys.ann) };
}

/** Locks of a namespace, straight in the store. */
async function fill(store: Stage['store'], namespace: string, count: number): Promise<void> {
  const commands = Array.from({ length: count }, (_, number) => ({
    ...{ kind: 'claim' as const, key: `${namespace}/${number}`, hold: { process: `p${number}`, number: 1 } },
    ...{ owner: 'o', permits: 1, capacity: 1, ttlMs: 600_000, queue: false, inbox: null, metadata: null },
  }));
  await Promise.all(store.apply(commands));
}

describe('events', () => {
  it('are serialised once, however many streams are sent them', async () => {
    const scene = await stage();
    const streams = await Promise.all(
      Array.from({ length: 20 }, () => listen(scene.url, '/v2/events?namespace=own')),
    );
    const have = (event: string) => streams.every(({ events }) => events.some((one) => one.event === event));
    await until(() => have('ready'), 'all are ready');
    const stringify = vi.spyOn(JSON, 'stringify');
    try {
      await scene.acquire('own/pool', { capacity: 5, owner: 'the-holder' });
      await until(() => have('appeared'), 'all were told');
      const locks = stringify.mock.calls.filter(
        ([value]) => typeof value === 'object' && value !== null && 'holding' in value,
      );
      expect(locks.length).toBeGreaterThan(0);
      expect(locks.length).toBeLessThanOrEqual(4);
    } finally {
      stringify.mockRestore();
    }
  });

  it('of a lock that changes all the time are looked for in at most a fifth of the time', async () => {
    const memory = memoryStore();
    const readMs = 40;
    let reads = 0;
    const slow: typeof memory = {
      ...memory,
      read: async (key) => {
        reads += 1;
        await pause(readMs);
        return memory.read(key);
      },
    };
    const scene = await stage({ store: slow });
    const { hold } = await scene.acquire('own/busy');
    const stream = await listen(scene.url, '/v2/events?namespace=own');
    await until(() => stream.events.some(({ event }) => event === 'ready'), 'it is ready');
    const sinceMs = performance.now();
    reads = 0;
    while (performance.now() - sinceMs < 1_200) {
      await scene.post('/v2/locks/own/busy/renew', { hold, ttl: '60s' });
    }
    const elapsedMs = performance.now() - sinceMs;
    expect(reads).toBeGreaterThan(0);
    expect(reads).toBeLessThanOrEqual(elapsedMs / (4 * readMs) + 2);
  });
});

describe('lists', () => {
  const LIST = '/v2/locks?limit=1000';

  it('of one tenant are made one after the other, and another tenant is served in between', async () => {
    const memory = memoryStore();
    const open = new Map<string, number>();
    let openMax = 0;
    const slow: typeof memory = {
      ...memory,
      async *list(query) {
        const { prefix } = query;
        open.set(prefix, (open.get(prefix) ?? 0) + 1);
        openMax = Math.max(openMax, open.get(prefix) ?? 0);
        await pause(20);
        yield* memory.list(query);
        open.set(prefix, (open.get(prefix) ?? 1) - 1);
      },
    };
    const { call, eve, ann } = await twoTenants(slow);
    await fill(memory, 'eve', 10);
    await fill(memory, 'ann', 10);
    const order: string[] = [];
    const list = async (name: string, as: Record<string, string>): Promise<Answer> => {
      const answer = await call('GET', LIST, undefined, as);
      order.push(name);
      return answer;
    };
    const lists = Array.from({ length: 16 }, () => list('eve', eve));
    await until(() => order.length > 0, 'one was answered');
    lists.push(list('ann', ann));
    for (const { status, body } of await Promise.all(lists)) {
      expect(status).toBe(200);
      expect(body.locks).toHaveLength(10);
    }
    expect(openMax).toBe(1);
    expect(order.indexOf('ann')).toBeLessThan(order.length - 4);
  });

  it('asked for by sixteen clients of one tenant hardly hold up the requests of another', async () => {
    const { call, post, store, eve, ann } = await twoTenants();
    await fill(store, 'eve', 1_000);
    let pages = 0;
    let isOver = false;
    const lister = async (): Promise<void> => {
      while (!isOver) {
        await call('GET', LIST, undefined, eve);
        pages += 1;
      }
    };
    const listers = Array.from({ length: 16 }, lister);
    await until(() => pages > 16, 'lists are made');
    const from = pages;
    const acquires = 12;
    for (let count = 0; count < acquires; count += 1) {
      expect((await post(`/v2/locks/ann/${count}/acquire`, { ttl: '30s' }, ann)).status).toBe(200);
    }
    const madeMeanwhile = pages - from;
    isOver = true;
    await Promise.all(listers);
    expect(madeMeanwhile / acquires).toBeLessThan(3);
  });
});
