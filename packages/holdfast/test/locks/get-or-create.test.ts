/** Once-only work: who creates, who shares a result, and who finds what others created. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AcquireTimeoutError, InvalidArgumentError, LeaseLostError, type Locks } from '../../src/index.js';
import type { Command, Reply } from '../../src/protocol/commands.js';
import { UnsupportedError } from '../../src/protocol/errors.js';
import { type FakeClock, type StagedStore, settle, watchOf } from '../engine/stage.js';
import { scene } from './place.js';

/** Replies take a while, each way the same. */
function delay(store: StagedStore, clock: FakeClock, wayMs: number): void {
  const { apply } = store;
  const after = <T>(value: T): Promise<T> =>
    new Promise((resolve) => void clock.timer(wayMs, () => resolve(value)));
  store.apply = (commands: readonly Command[]): Promise<Reply>[] =>
    commands.map(async (command) => {
      await after(null);
      const [reply] = apply.call(store, [command]);
      return after(await (reply as Promise<Reply>));
    });
}

test('a value that is there is returned, and nothing is locked', async () => {
  const { open, place } = scene();
  const { locks, store } = open();
  place.value = 'here';
  expect(await locks.getOrCreate('k', { get: place.get, create: place.creating(10) })).toBe('here');
  expect(store.applied).toEqual([]);
});

test('an absent value is created under the lock, which create is given, and released', async () => {
  const { open } = scene();
  const { locks } = open();
  let stored: number | undefined;
  const value = await locks.getOrCreate('k', {
    get: () => stored,
    create: async (lease) => {
      expect(lease.key).toBe('k');
      expect(lease.held).toBe(true);
      expect((await locks.inspect('k'))?.holders).toHaveLength(1);
      stored = lease.token;
      return lease.token;
    },
  });
  expect(value).toBe(stored);
  expect(await locks.inspect('k')).toBeNull();
});

test.each([0, '', false])('%j is a value, and not absent', async (value) => {
  const { locks } = scene().open();
  const create = (): typeof value => expect.fail('it was there');
  expect(await locks.getOrCreate('k', { get: () => value, create })).toBe(value);
});

test('callers of one process share one look, one creation and one result; later ones look again', async () => {
  const { clock, open, place } = scene();
  const { locks } = open();
  const options = { get: place.get, create: place.creating(50) };
  const first = Promise.all(Array.from({ length: 200 }, () => locks.getOrCreate('k', options)));
  await clock.advance(20);
  const joined = locks.getOrCreate('k', options);
  await clock.advance(40);
  expect(new Set(await first)).toEqual(new Set(['value 1']));
  expect(await joined).toBe('value 1');
  expect(place).toMatchObject({ begun: 1, looks: 2 });
  expect(await locks.getOrCreate('k', options)).toBe('value 1');
  expect(place.looks).toBe(3);
});

test('a failed creation fails for all callers of the flight; the next caller tries again', async () => {
  const { clock, open, place } = scene();
  const { locks } = open();
  const failing = { get: place.get, create: place.creating(10, true) };
  const both = [locks.getOrCreate('k', failing), locks.getOrCreate('k', failing)].map(watchOf);
  await clock.advance(20);
  expect(both.map(({ error }) => String(error))).toEqual(Array(2).fill('Error: creation failed'));
  const again = locks.getOrCreate('k', { get: place.get, create: place.creating(10) });
  await clock.advance(20);
  expect(await again).toBe('value 2');
});

test('a process that waits looks again when the creation of another is over, and does not create', async () => {
  const { clock, open, place } = scene();
  const [a, b] = [open().locks, open().locks];
  const options = { get: place.get, create: place.creating(100) };
  const values = Promise.all([a.getOrCreate('k', options), b.getOrCreate('k', options)]);
  await clock.advance(110);
  expect(await values).toEqual(['value 1', 'value 1']);
  expect(place).toMatchObject({ begun: 1, wrong: [] });
  expect(await a.inspect('k')).toBeNull();
});

test('when the creation of another process fails, one of those that waited creates', async () => {
  const { clock, open, place } = scene();
  const a = watchOf(open().locks.getOrCreate('k', { get: place.get, create: place.creating(50, true) }));
  await settle();
  const others = [1, 2, 3].map(() =>
    watchOf(open().locks.getOrCreate('k', { get: place.get, create: place.creating(50) })),
  );
  await clock.advance(2_000);
  expect(a.state).toBe('failed');
  expect(others.map(({ value }) => value)).toEqual(Array(3).fill('value 2'));
  expect(place).toMatchObject({ begun: 2, wrong: [] });
});

test('fifty processes are answered together, not one after the other', async () => {
  const { clock, open, place } = scene();
  const wayMs = 10;
  const processes = Array.from({ length: 50 }, () => open());
  for (const { store } of processes) delay(store, clock, wayMs);
  const options = { get: place.get, create: place.creating(200) };
  const answers = processes.map(({ locks }) => watchOf(locks.getOrCreate('k', options)));
  // Look, claim, create; then the release, a claim of all others and its reply, and one more of each to spare.
  await clock.advance(2 * wayMs + 200 + 8 * wayMs);
  expect(answers.filter(({ state }) => state !== 'done')).toEqual([]);
  expect(place).toMatchObject({ begun: 1, wrong: [] });
});

test('on a layout that has no shared holders, those who wait look in turn', async () => {
  const { clock, open, place } = scene();
  const processes = [1, 2, 3].map(() => open());
  for (const { store } of processes) {
    const { apply } = store;
    store.apply = (commands: readonly Command[]) =>
      commands.flatMap((command) =>
        command.kind === 'claim' && command.capacity > 1
          ? [Promise.reject(new UnsupportedError('one holder per key'))]
          : apply.call(store, [command]),
      );
  }
  const options = { get: place.get, create: place.creating(100) };
  const answers = processes.map(({ locks }) => watchOf(locks.getOrCreate('k', options)));
  await clock.advance(1_000);
  expect(answers.map(({ value }) => value)).toEqual(Array(3).fill('value 1'));
  expect(place).toMatchObject({ begun: 1, wrong: [] });
});

describe('a caller that leaves', () => {
  test('by its signal ends its own waiting, and not the flight of others', async () => {
    const { clock, open, place } = scene();
    const { locks } = open();
    const leaving = new AbortController();
    const options = { get: place.get, create: place.creating(50) };
    const starter = watchOf(locks.getOrCreate('k', { ...options, signal: leaving.signal }));
    const joined = watchOf(locks.getOrCreate('k', options));
    await settle();
    leaving.abort(new Error('left'));
    await settle();
    expect(String(starter.error)).toBe('Error: left');
    await clock.advance(60);
    expect(joined.value).toBe('value 1');
  });

  test('as the last one ends the waiting for the lock, so that nothing is created for nobody', async () => {
    const { clock, open, place } = scene();
    const [a, b] = [open(), open()];
    const held = await a.locks.acquire('k');
    const leaving = new AbortController();
    const options = { get: place.get, create: place.creating(50), signal: leaving.signal };
    const left = watchOf(b.locks.getOrCreate('k', options));
    await clock.advance(20);
    leaving.abort(new Error('left'));
    await settle();
    expect(left.state).toBe('failed');
    await held.release();
    await clock.advance(1_000);
    expect(place.begun).toBe(0);
    expect(await a.locks.inspect('k')).toBeNull();
  });

  test('when all have left, a creation that has begun goes on, and its failure harms nobody', async () => {
    const { clock, open, place } = scene();
    const { locks } = open();
    const leaving = new AbortController();
    const options = { get: place.get, create: place.creating(50, true), signal: leaving.signal };
    const left = watchOf(locks.getOrCreate('k', options));
    await clock.advance(10);
    leaving.abort(new Error('left'));
    await clock.advance(100);
    expect(String(left.error)).toBe('Error: left');
    expect(place).toMatchObject({ begun: 1, running: 0 });
    expect(await locks.inspect('k')).toBeNull();
  });
});

describe('wait', () => {
  test('bounds the waiting for others, each caller by its own; the error says who has the lock', async () => {
    const { clock, open, place } = scene();
    const [a, b] = [open({ owner: 'a' }).locks, open().locks];
    const held = await a.acquire('k');
    const options = { get: place.get, create: place.creating(10) };
    const short = watchOf(b.getOrCreate('k', { ...options, wait: '100ms' }));
    const long = watchOf(b.getOrCreate('k', { ...options, wait: '5s' }));
    const none = watchOf(b.getOrCreate('k', { ...options, wait: 0 }));
    await clock.advance(50);
    expect([short.state, long.state, none.state]).toEqual(['pending', 'pending', 'failed']);
    await clock.advance(60);
    expect(short.error).toBeInstanceOf(AcquireTimeoutError);
    expect(short.error).toMatchObject({ holders: [{ owner: 'a' }], key: 'k' });
    await held.release();
    await clock.advance(1_000);
    expect(long.value).toBe('value 1');
  });

  test('does not end the own creation, but bounds who joins it, as it bounds other processes', async () => {
    const { clock, open, place } = scene();
    const { locks } = open();
    const options = { get: place.get, create: place.creating(500), wait: '100ms' } as const;
    const starter = watchOf(locks.getOrCreate('k', options));
    const joined = watchOf(locks.getOrCreate('k', options));
    await clock.advance(200);
    expect(joined.error).toBeInstanceOf(AcquireTimeoutError);
    await clock.advance(400);
    expect(starter.value).toBe('value 1');
  });
});

test('a value created while the process stood still past its lease rejects with LeaseLostError, which has it', async () => {
  const { clock, open } = scene();
  const { locks } = open();
  const create = (): string => {
    clock.pause(5_000);
    return 'late';
  };
  const late = watchOf(locks.getOrCreate('k', { get: () => null, create, ttl: '1s' }));
  await settle();
  expect(late.error).toBeInstanceOf(LeaseLostError);
  expect(late.error).toMatchObject({ result: 'late', key: 'k', reason: 'deadline' });
});

test('nothing is created when the lease was lost while the value was looked for again', async () => {
  const { clock, open, place } = scene();
  const { locks, store } = open();
  store.fate = ({ kind }) => (kind === 'renew' ? 'lost' : 'pass');
  let looks = 0;
  const get = async (): Promise<null> => {
    looks += 1;
    if (looks === 2) await new Promise<void>((resolve) => void clock.timer(5_000, resolve));
    return null;
  };
  const late = watchOf(locks.getOrCreate('k', { get, create: place.creating(1), ttl: '1s' }));
  await clock.advance(6_000);
  expect(late.error).toBeInstanceOf(LeaseLostError);
  expect(place.begun).toBe(0);
});

describe('wrong calls', () => {
  const create = (): string => 'made';
  const get = (): null => null;
  const wrong: [string, unknown, RegExp][] = [
    ['no create', { get }, /create is undefined, but has to be a function/],
    ['no get', { create }, /get is undefined, but has to be a function/],
    ['an unknown option', { get, create, retries: 3 }, /retries/],
    ['a bad ttl', { get, create, ttl: 'soon' }, /ttl/],
    ['nothing', undefined, /options/i],
  ];

  test.each(wrong)('%s', async (_name, options, message) => {
    const { locks, store } = scene().open();
    const call = locks.getOrCreate as (key: string, options: unknown) => Promise<unknown>;
    const refused = await call.call(locks, 'k', options).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(InvalidArgumentError);
    expect(String(refused)).toMatch(message);
    expect(store.applied).toEqual([]);
  });

  test('create that returns nothing is told so, as everybody would create again', async () => {
    const { locks } = scene().open();
    const nothing = { get, create: () => undefined as unknown as string };
    await expect(locks.getOrCreate('k', nothing)).rejects.toThrow(/returned undefined.*Return what was/);
  });

  test('closed locks refuse it; closing ends its waiting', async () => {
    const { clock, open, place } = scene();
    const [a, b] = [open().locks, open().locks];
    await a.acquire('k');
    const waiting = watchOf(b.getOrCreate('k', { get: place.get, create: place.creating(1) }));
    await clock.advance(10);
    await b.close();
    expect(String(waiting.error)).toMatch(/closed/);
    await expect(b.getOrCreate('k', { get: place.get, create: place.creating(1) })).rejects.toThrow(/closed/);
    expect(clock.timers.size).toBeLessThanOrEqual(2);
  });
});

interface Arrival {
  readonly process: number;
  readonly atMs: number;
  readonly workMs: number;
  readonly fails: boolean;
  readonly gone: boolean;
  readonly heeds: boolean;
  readonly removesAfter: boolean;
}

const arrival: fc.Arbitrary<Arrival> = fc.record({
  process: fc.nat(3),
  atMs: fc.nat(2_000),
  workMs: fc.integer({ min: 1, max: 300 }),
  fails: fc.boolean(),
  gone: fc.boolean(),
  heeds: fc.boolean(),
  removesAfter: fc.boolean(),
});

test('however callers come, fail, leave, and values are removed: one creation per absent value', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(arrival, { minLength: 1, maxLength: 12 }), async (arrivals) => {
      const { clock, open, place } = scene();
      const processes = [0, 1, 2, 3].map(() => open());
      for (const { store } of processes) delay(store, clock, 3);
      const answers = arrivals.map(async ({ process, atMs, workMs, fails, gone, heeds, removesAfter }) => {
        await new Promise<void>((resolve) => void clock.timer(atMs, resolve));
        const leaving = new AbortController();
        if (gone) clock.timer(workMs / 2, () => leaving.abort(new Error('left')));
        const create = place.creating(workMs, fails, heeds ? leaving.signal : undefined);
        const locks = processes[process]?.locks as Locks;
        const options = { get: place.get, create, signal: leaving.signal, wait: '1h' } as const;
        try {
          const value = await locks.getOrCreate('k', options);
          if (removesAfter) place.value = null;
          return value;
        } catch (error) {
          const { message } = error as Error;
          return message === 'left' && !gone ? 'left by another' : message;
        }
      });
      const all = watchOf(Promise.all(answers));
      await clock.advance(20_000);
      expect(all.state).toBe('done');
      expect(place.wrong).toEqual([]);
      for (const answer of all.value ?? []) expect(answer).toMatch(/^(?:value \d+|left|creation failed)$/);
      // Every creation has ended, and nobody holds the lock.
      expect(place.running).toBe(0);
      expect(await processes[0]?.locks.inspect('k')).toBeNull();
    }),
    { numRuns: 60 },
  );
});
