import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import {
  createLocks,
  InvalidArgumentError,
  type ListOptions,
  type Locks,
  openStore,
} from '../../src/index.js';
import { memoryStore } from '../../src/stores/memory.js';
import { stage } from '../engine/stage.js';

/** Calls that a type checker would refuse, as JavaScript would make them. */
type Loose = Record<string, (...args: unknown[]) => Promise<unknown>>;

const wrongKeys = [
  '',
  'a\u0000b',
  'line\nbreak',
  'tab\t',
  '\u0085',
  'x'.repeat(513),
  '\ud800',
  7,
  null,
  undefined,
  {},
];

const wrongOptions: Record<string, unknown>[] = [
  { ttl: 0 },
  { ttl: -1 },
  { ttl: Number.NaN },
  { ttl: Number.POSITIVE_INFINITY },
  { ttl: 9 },
  { ttl: '30' },
  { ttl: '30 s' },
  { ttl: '8d' },
  { ttl: null },
  { ttl: 8 * 24 * 3_600_000 },
  { wait: -1 },
  { wait: Number.NaN },
  { wait: 'soon' },
  { minHold: -5 },
  { owner: '' },
  { owner: 'a\nb' },
  { owner: 5 },
  { metadata: 'text' },
  { metadata: [1] },
  { metadata: { toJSON: () => 'text' } },
  { metadata: { big: 10n } },
  { metadata: { text: 'x'.repeat(5_000) } },
  { renew: 'yes' },
  { queue: 1 },
  { signal: {} },
  { timeout: 5 },
  { permits: 2 },
];

const named = <T>(values: readonly T[]): [string, T][] =>
  values.map((value) => [inspect(value).slice(0, 60), value]);

test.each(named<unknown>(wrongKeys))('the key %s is refused and nothing is sent', async (_, key) => {
  const { open } = stage();
  const { locks, store } = open();
  const loose = locks as unknown as Loose;
  for (const verb of ['acquire', 'tryAcquire', 'inspect', 'evict']) {
    await expect(loose[verb]?.(key), verb).rejects.toBeInstanceOf(InvalidArgumentError);
  }
  await expect(loose.withLock?.(key, () => 1)).rejects.toBeInstanceOf(InvalidArgumentError);
  expect(store.applied).toEqual([]);
});

test.each(named(wrongOptions))('the options %s are refused and nothing is sent', async (_, options) => {
  const { open } = stage();
  const { locks, store } = open();
  const loose = locks as unknown as Loose;
  await expect(loose.acquire?.('k', options)).rejects.toBeInstanceOf(InvalidArgumentError);
  await expect(loose.tryAcquire?.('k', options)).rejects.toBeInstanceOf(InvalidArgumentError);
  expect(store.applied).toEqual([]);
});

test('a store that was not made or not awaited is refused at once', () => {
  for (const store of [memoryStore, Promise.resolve(memoryStore()), 'redis://localhost', {}, null]) {
    expect(() => createLocks(store as never)).toThrow(/needs a store, such as memoryStore\(\)/);
  }
});

test('null is refused where an option may be left out', async () => {
  const nothing = null as never;
  for (const options of [{ ttl: nothing }, { wait: nothing }, { owner: nothing }]) {
    expect(() => createLocks(memoryStore(), options)).toThrow(InvalidArgumentError);
  }
  const locks = createLocks(memoryStore());
  await expect(locks.all(['a', 'b']).acquire({ wait: nothing })).rejects.toThrow(InvalidArgumentError);
  await expect(locks.close({ drain: nothing })).rejects.toThrow(InvalidArgumentError);
  const watched = locks.watch({ every: nothing })[Symbol.asyncIterator]();
  await expect(watched.next()).rejects.toThrow(InvalidArgumentError);
  await expect(openStore(Symbol('url') as never)).rejects.toThrow(InvalidArgumentError);
});

test('a message names what was given and what to do', async () => {
  const locks = createLocks(memoryStore());
  await expect(locks.acquire('k', { ttl: 0 })).rejects.toThrow(
    /ttl is 0, but has to be a duration from 10ms to 7d: /,
  );
  await expect(locks.acquire('k', { wait: -1 })).rejects.toThrow(/a duration of at least 0: /);
  expect(() => locks.on('loss' as 'lost', () => {})).toThrow(/no event "loss".*: acquiring, .*, lost, /);
  const listed = locks.list({ limit: '' as unknown as number })[Symbol.asyncIterator]();
  await expect(listed.next()).rejects.toThrow(/limit is "", but/);
  await expect(locks.acquire('k', { tll: 5 } as object)).rejects.toThrow(/no option "tll".*ttl, wait/s);
});

test('a signal that is aborted already rejects with its reason, and nothing is sent', async () => {
  const { open } = stage();
  const { locks, store } = open();
  const reason = new Error('no longer wanted');
  await expect(locks.acquire('k', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  expect(store.applied).toEqual([]);
});

test('capacities and permits are whole numbers, and no more permits than capacity', async () => {
  const locks = createLocks(memoryStore());
  for (const capacity of [0, -1, 1.5, Number.NaN, 1_000_001]) {
    expect(() => locks.semaphore('k', { capacity }), String(capacity)).toThrow(InvalidArgumentError);
  }
  const semaphore = locks.semaphore('k', { capacity: 3 });
  for (const permits of [0, 4, 1.5, Number.NaN]) {
    await expect(semaphore.acquire({ permits }), String(permits)).rejects.toBeInstanceOf(
      InvalidArgumentError,
    );
  }
});

test('namespaces, stores, lists of keys, events and work are checked too', async () => {
  const locks = createLocks(memoryStore());
  const loose = locks as unknown as Record<string, (...args: unknown[]) => unknown>;
  for (const namespace of ['', 'a/b', 'ü', 'x'.repeat(65)]) {
    expect(() => createLocks(memoryStore(), { namespace })).toThrow(InvalidArgumentError);
  }
  expect(() => createLocks(undefined as never)).toThrow(InvalidArgumentError);
  expect(() => locks.all([])).toThrow(InvalidArgumentError);
  expect(() => locks.any([''])).toThrow(InvalidArgumentError);
  expect(() => loose.on?.('gone', () => undefined)).toThrow(InvalidArgumentError);
  expect(() => loose.on?.('lost', 5)).toThrow(InvalidArgumentError);
  await expect(locks.withLock('k', undefined as never)).rejects.toBeInstanceOf(InvalidArgumentError);
  expect(await locks.inspect('k')).toBeNull();
});

test('what a list is asked for is checked', async () => {
  const locks = createLocks(memoryStore());
  const bad = [
    ...[{ prefix: 5 }, { prefix: '\0' }, { limit: 0 }, { limit: 1.5 }, { before: 'k' }],
    ...[{ after: 5 }, { after: null }, { after: '\0' }, { after: '\ud800' }, { after: 'x'.repeat(513) }],
  ];
  for (const options of bad) {
    const first = locks
      .list(options as ListOptions)
      [Symbol.asyncIterator]()
      .next();
    await expect(first, JSON.stringify(options)).rejects.toBeInstanceOf(InvalidArgumentError);
  }
});

test('F17: two spellings of one letter are one key; different names never meet', async () => {
  const locks: Locks = createLocks(memoryStore());
  await locks.acquire('caf\u00e9');
  expect(await locks.tryAcquire('cafe\u0301')).toBeNull();
  const other = createLocks(memoryStore(), { namespace: 'a' });
  expect(await other.tryAcquire('b/c')).not.toBeNull();
  expect(await other.tryAcquire('b:c')).not.toBeNull();
  expect(await other.tryAcquire('b%2Fc')).not.toBeNull();
  expect(await other.tryAcquire('B/C')).not.toBeNull();
});

test('P13: two namespaces on one store never meet', async () => {
  const store = memoryStore();
  const a = createLocks(store, { namespace: 'a' });
  const b = createLocks(store, { namespace: 'a.b' });
  await a.acquire('k');
  expect(await b.tryAcquire('k')).not.toBeNull();
  const keys: string[] = [];
  for await (const { key } of a.list()) keys.push(key);
  expect(keys).toEqual(['k']);
});

test('durations are milliseconds or have a unit', async () => {
  const locks = createLocks(memoryStore());
  for (const [ttl, ms] of [
    [1_500, 1_500],
    ['1500ms', 1_500],
    ['1.5s', 1_500],
    ['2m', 120_000],
    ['1h', 3_600_000],
    ['7d', 604_800_000],
  ] as const) {
    const lease = await locks.acquire('k', { ttl });
    expect(lease.expiresAt.getTime() - lease.acquiredAt.getTime()).toBe(ms);
    await lease.release();
  }
});
