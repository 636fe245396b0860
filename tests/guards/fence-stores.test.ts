/** Every store of tokens keeps the highest per key, whatever order and number of writers. */
import { InvalidArgumentError, StoreError } from 'holdfast';
import {
  type FenceStore,
  type MemoryFencesOptions,
  memoryFences,
  redisFences,
  type SqlStatement,
  sqlFences,
  sqlGuard,
} from 'holdfast/fences';
import { available, startPostgres, startRedis } from 'holdfast-test-servers';
import { Redis } from 'ioredis';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { poolOn } from './takeover.js';

const closers: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

const STORES: Readonly<Record<string, () => Promise<FenceStore>>> = {
  'in memory': async () => memoryFences(),
  ...(available('redis') && {
    async 'in Redis'() {
      const server = await startRedis();
      const client = new Redis(server.url);
      closers.push(server.stop, () => client.disconnect());
      await client.del('fence:order', 'fence:other', 'fence:crowd');
      return redisFences((script, keys, args) => client.eval(script, keys.length, ...keys, ...args));
    },
  }),
  ...(available('postgres') && {
    async 'in PostgreSQL'() {
      const server = await startPostgres();
      const pool = poolOn(await server.createDatabase());
      closers.push(server.stop, () => pool.end());
      const guard = sqlGuard({ dialect: 'postgres' });
      await pool.query(guard.createTable);
      const run = async ({ text, values }: SqlStatement): Promise<number> =>
        (await pool.query(text, [...values])).rowCount ?? 0;
      return sqlFences(guard, run);
    },
  }),
};

describe.each(Object.entries(STORES))('tokens kept %s', (_name, open) => {
  it('take the same one again, refuse a lower one, and know each key for itself', async () => {
    const store = await open();
    const raises: boolean[] = [];
    for (const token of [5, 5, 9, 8, 9, 10]) raises.push(await store.raise('order', token));
    expect(raises).toEqual([true, true, true, false, true, true]);
    expect(await store.raise('other', 1)).toBe(true);
    const tokens = Array.from({ length: 40 }, (_, at) => ((at * 17) % 40) + 1);
    const answers = await Promise.all(tokens.map((token) => store.raise('crowd', token)));
    expect(answers[tokens.indexOf(40)]).toBe(true);
    expect(await store.raise('crowd', 39)).toBe(false);
  });
});

describe('tokens kept in memory', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('are bounded: a key more is refused by an error, and the keys that are there are not forgotten', async () => {
    const store = memoryFences({ keysMax: 2 });
    expect(await store.raise('leader', 10)).toBe(true);
    expect(await store.raise('b', 20)).toBe(true);
    for (let at = 0; at < 3; at += 1) expect(() => store.raise(`order${at}`, 30)).toThrow(StoreError);
    expect(() => store.raise('c', 30)).toThrow(/keysMax/);
    expect(await store.raise('leader', 9)).toBe(false);
    expect(await store.raise('leader', 10)).toBe(true);
    expect(await store.raise('b', 19)).toBe(false);
  });

  it('are forgotten `keep` after the last request, and say nothing about other keys', async () => {
    vi.useFakeTimers({ toFake: ['performance'], now: 0 });
    const store = memoryFences({ keysMax: 2, keep: '1m' });
    expect(await store.raise('a', Number.MAX_SAFE_INTEGER)).toBe(true);
    expect(await store.raise('b', 20)).toBe(true);
    vi.advanceTimersByTime(45_000);
    // A stale request makes the key remembered for longer.
    expect(await store.raise('b', 19)).toBe(false);
    vi.advanceTimersByTime(20_000);
    expect(await store.raise('c', 5)).toBe(true);
    expect(await store.raise('b', 19)).toBe(false);
    vi.advanceTimersByTime(60_001);
    expect(await store.raise('a', 7)).toBe(true);
    expect(await store.raise('b', 19)).toBe(true);
  });

  it('refuse what is no number of keys and no time', () => {
    expect(() => memoryFences({ keysMax: 0 })).toThrow(InvalidArgumentError);
    for (const keep of [0, -1, 'long'] as const) {
      expect(() => memoryFences({ keep } as MemoryFencesOptions)).toThrow(/keep/);
    }
  });
});
