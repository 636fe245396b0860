import { expect, test, vi } from 'vitest';
import { sqlGuard } from '../../src/fences/index.js';
import {
  AcquireTimeoutError,
  createLocks,
  InvalidArgumentError,
  StoreError,
  UnsupportedError,
} from '../../src/index.js';
import type { Reply } from '../../src/protocol/commands.js';
import type { Store } from '../../src/protocol/store.js';
import { memoryStore } from '../../src/stores/memory.js';
import { sqliteStore } from '../../src/stores/sqlite/index.js';
import { settle, stage, watchOf } from '../engine/stage.js';

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const each of stream) void each;
}

const strange: [string, unknown][] = [
  ['undefined', undefined],
  ['null', null],
  ['a reply of another kind', { kind: 'released', held: true, now: 1, decision: 1, othersWait: false }],
  ['a grant without an end', { kind: 'granted', token: 1, tokenLast: 1, acquiredAt: 1, now: 1, decision: 1 }],
  ['a grant at no time', { kind: 'granted', token: 1, tokenLast: 1, expiresAt: 5, now: Number.NaN }],
  ['busy, without saying until when', { kind: 'busy', holders: [], position: null, now: 1 }],
  ['busy, without a place', { kind: 'busy', holders: [], freeInMs: 1, now: 1 }],
  ['busy, held by nothing', { kind: 'busy', freeInMs: 1, position: null, now: 1 }],
];

test.each(strange)('a store that answers %s is unknown, and nothing else happens', async (_, answer) => {
  const { clock, open } = stage();
  const { locks, store } = open();
  store.apply = (commands) => commands.map(() => Promise.resolve(answer as Reply));
  const tried = watchOf(locks.tryAcquire('k'));
  await clock.advance(2_100);
  expect(tried.error).toBeInstanceOf(StoreError);
});

test.each(strange)(
  'a store that answers a waiter with %s keeps no other lease from its deadline',
  async (_, answer) => {
    const { clock, open } = stage();
    const { locks, store } = open();
    const { signal } = await locks.acquire('other', { ttl: 5_000 });
    store.apply = (commands) => commands.map(() => Promise.resolve(answer as Reply));
    const waiting = watchOf(locks.acquire('k', { wait: 10_000 }));
    await clock.advance(5_000);
    expect(signal.aborted).toBe(true);
    await clock.advance(6_000);
    expect(waiting.error).toBeInstanceOf(StoreError);
  },
);

test('a store that does not say how often to look for the dead is asked like one that cannot tell', async () => {
  const { clock, open } = stage();
  const { locks } = open({}, { livenessPollMs: undefined as never });
  const other = await open().locks.acquire('k', { ttl: 3_000, renew: false });
  const { signal } = await locks.acquire('other', { ttl: 1_000, renew: false });
  const waiting = watchOf(locks.acquire('k', { wait: 10_000 }));
  await clock.advance(1_500);
  expect([signal.aborted, other.held, waiting.state]).toEqual([true, true, 'pending']);
  await clock.advance(3_000);
  expect(waiting.state).toBe('done');
});

test('a holder of other software whose time is no date is named all the same', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const holder = { owner: 'them', permits: 1, capacity: 1, token: 1, metadata: null, resting: false };
  const holders = [{ ...holder, acquiredAt: 0, expiresAt: Number.MAX_SAFE_INTEGER }];
  const busy = { kind: 'busy', holders, freeInMs: 1_000, position: null, now: 1, decision: 1 } as const;
  store.apply = (commands) => commands.map(() => Promise.resolve({ ...busy, othersWait: false }));
  const waiting = watchOf(locks.acquire('k', { wait: 100 }));
  await clock.advance(1_000);
  expect(waiting.error).toBeInstanceOf(AcquireTimeoutError);
  expect(String(waiting.error)).toMatch(
    /held by them since 1970-01-01T00:00:00.000Z \(expires at 9007199254740991 unless renewed\)/,
  );
});

test.each([undefined, null, 'text', ['text'], [undefined], [7]])(
  'a store whose apply returns %j is unknown, and nothing else happens',
  async (returned) => {
    const { clock, open } = stage();
    const { locks, store } = open();
    store.apply = () => returned as never;
    const tried = watchOf(locks.tryAcquire('k'));
    await clock.advance(2_100);
    expect(tried.error).toBeInstanceOf(StoreError);
    expect((tried.error as StoreError).cause).toMatchObject({
      message: expect.stringMatching(/^The store /),
    });
  },
);

test('a store that withdraws every claim is not asked in a hot loop', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  let asked = 0;
  store.apply = (commands) =>
    commands.map(() => {
      asked += 1;
      return Promise.resolve({ kind: 'withdrawn', now: 1, decision: 1, othersWait: false } as const);
    });
  const tried = watchOf(locks.tryAcquire('k'));
  await clock.advance(2_100);
  expect(tried.error).toBeInstanceOf(StoreError);
  expect(asked).toBeLessThan(100);
});

test('list on a store that hangs settles; close closes a store that cannot be listened to', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const never = new Promise<never>(() => undefined);
  store.list = () => ({ [Symbol.asyncIterator]: () => ({ next: () => never, return: () => never }) });
  const listing = watchOf(drain(locks.list()));
  await clock.advance(5_100);
  expect(listing.error).toBeInstanceOf(StoreError);
  const closed = vi.fn(() => Promise.resolve());
  const deaf: Store = { ...memoryStore(), listen: () => never, close: closed };
  const others = createLocks(deaf);
  await (await others.acquire('k')).release();
  void watchOf(others.close());
  await settle();
  await settle();
  expect(closed).toHaveBeenCalledOnce();
});

test('stores and guards refuse options that they do not have', () => {
  const wrong: (() => unknown)[] = [
    () => memoryStore({ nwo: 1 } as object),
    () => sqliteStore(':memory:', { livness: true } as object),
    () => sqliteStore(':memory:', { liveness: 'no' } as object),
    () => sqliteStore(undefined as never),
    () => sqlGuard({ dialct: 'sqlite' } as object),
    () => sqlGuard(null as never),
  ];
  for (const call of wrong) expect(call, String(call)).toThrow(InvalidArgumentError);
});

test('P7: an error of the store, of whatever class, is unknown: asked again, and withdrawn on giving up', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const { inner } = store;
  store.apply = (commands) =>
    commands.map(async (command) => {
      const [reply] = inner.apply([command]);
      if (command.kind !== 'claim' && reply) return reply;
      throw new StoreError('the connection broke', { operation: 'apply' });
    });
  const tried = watchOf(locks.tryAcquire('k'));
  await clock.advance(2_100);
  expect(tried.error).toBeInstanceOf(StoreError);
  expect(await locks.inspect('k')).toBeNull();
});

test('evict tells at once what the store can never do, and ends nobody who came since', async () => {
  const { open } = stage();
  const { locks, store } = open();
  const first = await locks.acquire('k');
  await first.release();
  const second = await locks.acquire('k');
  expect(await locks.evict('k', { upToToken: first.token })).toBe(0);
  expect(second.held).toBe(true);
  await expect(locks.evict('k', { upToToken: -1 })).rejects.toBeInstanceOf(InvalidArgumentError);
  store.apply = (commands) => commands.map(() => Promise.reject(new UnsupportedError('a newer record')));
  await expect(locks.evict('k')).rejects.toBeInstanceOf(UnsupportedError);
});
