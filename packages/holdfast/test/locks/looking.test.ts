import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Readable } from 'node:stream';
import { expect, test, vi } from 'vitest';
import { createLocks, type KeyChange, type ListOptions, type Locks } from '../../src/index.js';
import { memoryStore } from '../../src/stores/memory.js';
import { stage, watchOf } from '../engine/stage.js';

test('events tell the story, on the locks and on diagnostics_channel, and a listener that throws harms nobody', async () => {
  const { clock, open } = stage();
  const a = open({ owner: 'a' });
  const b = open({ owner: 'b' });
  const seen: string[] = [];
  const published: unknown[] = [];
  const onPublished = (message: unknown): void => void published.push(message);
  subscribe('holdfast:acquired', onPublished);
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  b.locks.on('acquired', () => {
    throw new Error('a bad listener');
  });
  for (const name of ['acquired', 'waiting', 'renewed', 'jeopardy', 'lost', 'released'] as const) {
    b.locks.on(name, (detail) => seen.push(`${name} ${detail.key} ${detail.owner}`));
  }
  const held = await a.locks.acquire('k');
  const waiting = b.locks.acquire('k', { ttl: 3_000 });
  await clock.advance(10);
  await held.release();
  const lease = await waiting;
  await clock.advance(1_100);
  b.store.fate = () => 'rejected';
  await clock.advance(5_000);
  expect(lease.state).toBe('lost');
  unsubscribe('holdfast:acquired', onPublished);
  expect([...new Set(seen)]).toEqual([
    'waiting k b',
    'acquired k b',
    'renewed k b',
    'jeopardy k b',
    'lost k b',
  ]);
  expect(published).toHaveLength(2);
  expect(published[1]).toMatchObject({ key: 'k', owner: 'b', token: lease.token, handedOver: false });
  expect(warned).toHaveBeenCalledOnce();
  warned.mockRestore();
});

test('events that a listener causes are told after the one it was told', async () => {
  const { clock, open } = stage();
  const { locks } = open();
  const stop = new AbortController();
  const seen: string[] = [];
  locks.on('acquired', ({ key }) => void locks.held(key)?.release());
  locks.on('waiting', () => stop.abort());
  for (const name of ['acquired', 'released', 'waiting', 'not-acquired'] as const) {
    locks.on(name, ({ key }) => seen.push(`${name} ${key}`));
  }
  await locks.acquire('k');
  await open().locks.acquire('l');
  await expect(locks.acquire('l', { signal: stop.signal })).rejects.toThrow();
  await clock.advance(10);
  expect(seen).toEqual(['acquired k', 'released k', 'waiting l', 'not-acquired l']);
});

test('on returns a function that unsubscribes', async () => {
  const locks = createLocks(memoryStore());
  const tokens: number[] = [];
  const off = locks.on('acquired', ({ token }) => tokens.push(token));
  await (await locks.acquire('k')).release();
  off();
  await (await locks.acquire('k')).release();
  expect(tokens).toHaveLength(1);
});

test('inspect and list show who holds and who waits, and never a hold id or an inbox', async () => {
  const { clock, open } = stage();
  const a = open({ owner: 'a' });
  const b = open({ owner: 'b' });
  await a.locks.acquire('order:1', { metadata: { job: 7 } });
  void watchOf(b.locks.acquire('order:1', { wait: '1h' }));
  await a.locks.acquire('order:2');
  await a.locks.acquire('other');
  await clock.advance(10);
  const info = await b.locks.inspect('order:1');
  expect(info).toMatchObject({
    key: 'order:1',
    holders: [{ owner: 'a', metadata: { job: 7 } }],
    waiters: [{ owner: 'b' }],
  });
  expect(JSON.stringify(info)).not.toContain('random-');
  const keys: string[] = [];
  for await (const { key } of b.locks.list({ prefix: 'order:' })) keys.push(key);
  expect(keys).toEqual(['order:1', 'order:2']);
  const limited: string[] = [];
  for await (const { key } of b.locks.list({ limit: 1 })) limited.push(key);
  expect(limited).toEqual(['order:1']);
  expect(await b.locks.inspect('free')).toBeNull();
});

test('list goes on behind a key of the namespace, also one that is free, and page by page has every key once', async () => {
  const { open } = stage();
  const { locks } = open();
  const { locks: others } = open({ namespace: 'z' });
  const names = ['a', 'b', 'caf\u00e9', '\ufffd', '\u{1f512}'];
  for (const name of names.toReversed()) await locks.acquire(name);
  await others.acquire('b');
  const listed = async (options: ListOptions): Promise<string[]> => {
    const keys: string[] = [];
    for await (const { key } of locks.list(options)) keys.push(key);
    return keys;
  };
  expect(await listed({ after: 'a' })).toEqual(names.slice(1));
  expect(await listed({ after: 'c' })).toEqual(names.slice(2));
  expect(await listed({ after: '' })).toEqual(names);
  expect(await listed({ prefix: 'caf', after: 'a', limit: 1 })).toEqual(['caf\u00e9']);
  const pages = await listed({ limit: 2 });
  for (let page = 2; page <= 3; page++)
    pages.push(...(await listed({ limit: 2, after: pages.at(-1) ?? '' })));
  expect(pages).toEqual(names);
});

test('list goes on behind the very key that it gave: other software may have left names in another form', async () => {
  const { memory, open } = stage();
  const { locks } = open();
  // In normal form it is U+00C5, and sorts before itself.
  const odd = '\u212b';
  const claim = {
    kind: 'claim',
    key: `default/${odd}`,
    hold: { process: 'p', number: 1 },
    owner: 'x',
  } as const;
  const rest = { permits: 1, capacity: 1, ttlMs: 10_000, queue: true, inbox: null, metadata: null };
  await Promise.all(memory.apply([{ ...claim, ...rest }]));
  for await (const { key } of locks.list({ after: odd })) throw new Error(`${key} is listed again`);
});

test.each(['not json {', '', 'null', '7', '"text"', '[1]', '{"a":1'])(
  'a holder whose metadata other software stored as %j is shown without metadata, and keeps nobody from reading or waiting',
  async (metadata) => {
    const { clock, memory, open } = stage();
    const { locks } = open();
    const hold = { process: 'p', number: 1 };
    const claim = { kind: 'claim', key: 'default/k', hold, owner: 'x', permits: 1, capacity: 1 } as const;
    await Promise.all(memory.apply([{ ...claim, ttlMs: 10_000, queue: true, inbox: null, metadata }]));
    const shown = { owner: 'x', metadata: undefined };
    expect((await locks.inspect('k'))?.holders).toMatchObject([shown]);
    for await (const { holders } of locks.list()) expect(holders).toMatchObject([shown]);
    expect(await locks.tryAcquire('k')).toBeNull();
    expect(await locks.tryWithLock('k', () => undefined)).toMatchObject({ holders: [shown] });
    const waiting = locks.acquire('k', { wait: '1m' });
    await clock.advance(11_000);
    await (await waiting).release();
  },
);

test('watch tells what appears, changes and goes', async () => {
  const { clock, open } = stage();
  const { locks } = open({ owner: 'a' });
  const changes: string[] = [];
  const stop = new AbortController();
  const watching = (async () => {
    const stream: AsyncIterable<KeyChange> = locks.watch({ every: 100, signal: stop.signal });
    for await (const { kind, info } of stream) changes.push(`${kind} ${info.key}`);
  })();
  await clock.advance(10);
  const lease = await locks.acquire('k');
  await clock.advance(150);
  await lease.release();
  const again = await locks.acquire('k');
  await clock.advance(150);
  await again.release();
  await clock.advance(150);
  stop.abort();
  await clock.advance(10);
  await watching;
  expect(changes).toEqual(['appeared k', 'changed k', 'gone k']);
});

test('watch ends at once when its signal aborts while a change is looked at', async () => {
  const { clock, open } = stage();
  const { locks } = open();
  await locks.acquire('k');
  const stop = new AbortController();
  let isOver = false;
  const watching = (async () => {
    for await (const _ of locks.watch({ every: '1h', signal: stop.signal })) stop.abort();
    isOver = true;
  })();
  await clock.advance(10);
  expect(isOver).toBe(true);
  await watching;
});

test.each(['return', 'throw'] as const)('%s() of a watch that waits ends it at once', async (method) => {
  const { clock, open } = stage();
  const { locks } = open();
  await locks.acquire('k');
  const changes = locks.watch({ every: '1h' })[Symbol.asyncIterator]();
  await changes.next();
  const next = watchOf(changes.next());
  await clock.advance(1_000);
  const ended = watchOf(Promise.resolve(changes[method]?.(new Error('left'))));
  await clock.advance(10);
  expect(next.value).toMatchObject({ done: true });
  expect(ended.state).toBe(method === 'return' ? 'done' : 'failed');
});

test.each([50, 3_600_000])('close() ends a watch that reads every %i ms, without an error', async (every) => {
  const { clock, open } = stage();
  const { locks } = open();
  await locks.acquire('k');
  const watching = watchOf(
    (async () => {
      for await (const change of locks.watch({ every })) void change;
    })(),
  );
  await clock.advance(500);
  void locks.close({ drain: 300 });
  await clock.advance(1_000);
  expect(watching).toMatchObject({ state: 'done' });
  await expect(locks.watch()[Symbol.asyncIterator]().next()).rejects.toThrow(/closed/);
});

test('locks that are closed inside the loop of a watch or an observer end it at once, however rarely it reads', async () => {
  const { clock, open } = stage();
  const loops = [
    (locks: Locks) => locks.watch({ every: '1h' }),
    (locks: Locks) => locks.elect('k').observe({ every: '1h' }),
  ].map((iterate) => {
    const { locks } = open();
    return watchOf(
      (async () => {
        await locks.tryAcquire('k');
        for await (const change of iterate(locks)) {
          void change;
          await locks.close({ drain: 0 });
        }
      })(),
    );
  });
  await clock.advance(100);
  expect(loops).toMatchObject([{ state: 'done' }, { state: 'done' }]);
  expect(clock.timers.size).toBe(0);
});

test.each([undefined, new Error('left')])(
  'a stream of a watch that is destroyed (%s) leaves nobody behind who reads the store',
  async (error) => {
    const { clock, open } = stage();
    const { locks, store } = open();
    await locks.acquire('k');
    const list = vi.spyOn(store, 'list');
    const stream = Readable.from(locks.watch({ every: 50 })).on('error', () => undefined);
    stream.resume();
    await clock.advance(500);
    expect(list.mock.calls.length).toBeGreaterThan(5);
    stream.destroy(error);
    await clock.advance(50);
    expect(stream.closed).toBe(true);
    list.mockClear();
    await clock.advance(500);
    expect(list).not.toHaveBeenCalled();
  },
);

test('evict ends the holder, tells it, lets the next in; on a free key it ends nobody', async () => {
  const { clock, open } = stage();
  const a = open();
  const b = open();
  const evicted = await a.locks.acquire('k', { ttl: 60_000 });
  const waiting = watchOf(b.locks.acquire('k', { wait: '1h' }));
  await clock.advance(10);
  expect(await b.locks.evict('k')).toBe(1);
  await clock.advance(5);
  expect([evicted.state, waiting.state]).toEqual(['lost', 'done']);
  expect(await b.locks.evict('free')).toBe(0);
});
