/** Once-only work whose functions never end, or fail because their caller left. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, test } from 'vitest';
import { AcquireTimeoutError, InvalidArgumentError, type Lease, LeaseLostError } from '../../src/index.js';
import { settle, watchOf } from '../engine/stage.js';
import { scene } from './place.js';

const never = (): Promise<never> => new Promise(() => undefined);

describe('a creation that never ends', () => {
  const losses: [
    string,
    { maxHold?: '2s' },
    (process: ReturnType<ReturnType<typeof scene>['open']>) => void,
  ][] = [
    ['max-hold', { maxHold: '2s' }, () => undefined],
    ['evicted', {}, ({ locks }) => void locks.evict('k')],
    [
      'deadline',
      {},
      ({ store }) => {
        store.fate = ({ kind }) => (kind === 'renew' ? 'lost' : 'pass');
      },
    ],
  ];

  test.each(losses)(
    'is over with its lease (%s): its caller is told, the others go on',
    async (reason, options, lose) => {
      const { clock, open, place } = scene();
      const process = open();
      const { locks } = process;
      const stuck = watchOf(locks.getOrCreate('k', { get: place.get, create: never, ttl: '3s', ...options }));
      await clock.advance(10);
      const joined = watchOf(
        locks.getOrCreate('k', { get: place.get, create: place.creating(10), wait: '1m' }),
      );
      lose(process);
      await clock.advance(6_000);
      expect(stuck.error).toBeInstanceOf(LeaseLostError);
      expect(stuck.error).toMatchObject({ key: 'k', reason });
      expect(joined.value).toBe('value 1');
      const later = await locks.getOrCreate('k', { get: place.get, create: never });
      expect(later).toBe('value 1');
    },
  );

  test('whose look under the lock never ends is over with its lease as well', async () => {
    const { clock, open, place } = scene();
    const { locks } = open();
    let looks = 0;
    const get = (): null | Promise<never> => (++looks === 2 ? never() : null);
    const stuck = watchOf(locks.getOrCreate('k', { get, create: place.creating(1), maxHold: '1s' }));
    await clock.advance(2_000);
    expect(stuck.error).toMatchObject({ code: 'lease-lost', reason: 'max-hold' });
    const later = watchOf(locks.getOrCreate('k', { get: place.get, create: place.creating(10) }));
    await clock.advance(20);
    expect(later.value).toBe('value 1');
    expect(await locks.inspect('k')).toBeNull();
  });

  test('ends with the locks when they close', async () => {
    const { clock, open, place } = scene();
    const { locks } = open();
    const stuck = watchOf(locks.getOrCreate('k', { get: place.get, create: never }));
    await settle();
    const joined = watchOf(locks.getOrCreate('k', { get: place.get, create: never }));
    const closed = watchOf(locks.close({ drain: 0 }));
    await clock.advance(10);
    expect(closed.state).toBe('done');
    expect(stuck.error).toMatchObject({ code: 'lease-lost', reason: 'closed' });
    expect(joined.error).toBeInstanceOf(InvalidArgumentError);
    expect(clock.timers.size).toBe(0);
  });

  test('is awaited by nobody else once the locks begin to close', async () => {
    const { clock, open, place } = scene();
    const { locks } = open();
    const stuck = watchOf(locks.getOrCreate('k', { get: place.get, create: never }));
    await settle();
    const joined = [1_000, Number.POSITIVE_INFINITY].map((wait) =>
      watchOf(locks.getOrCreate('k', { get: place.get, create: never, wait })),
    );
    const closed = watchOf(locks.close({ drain: '3s' }));
    await settle();
    expect(joined.map(({ error }) => error)).toEqual(Array(2).fill(expect.any(InvalidArgumentError)));
    expect([stuck.state, closed.state]).toEqual(['pending', 'pending']);
    await clock.advance(3_000);
    await clock.advance(10);
    expect(stuck.error).toMatchObject({ code: 'lease-lost', reason: 'closed' });
    expect(closed.state).toBe('done');
  });
});

test('a creation that ends while the locks drain gives its own caller the value', async () => {
  const { clock, open, place } = scene();
  const { locks } = open();
  const created = watchOf(locks.getOrCreate('k', { get: place.get, create: place.creating(1_000) }));
  await settle();
  const joined = watchOf(locks.getOrCreate('k', { get: place.get, create: never }));
  const closed = watchOf(locks.close({ drain: '3s' }));
  await clock.advance(1_100);
  expect([created.value, closed.state]).toEqual(['value 1', 'done']);
  expect(joined.error).toBeInstanceOf(InvalidArgumentError);
});

describe('a look that never ends', () => {
  test('keeps nobody else waiting when the locks close, whatever comes of it', async () => {
    const { open, place } = scene();
    const { locks } = open();
    const leaving = new AbortController();
    const { signal } = leaving;
    const left = watchOf(locks.getOrCreate('k', { get: never, create: never, signal }));
    const joined = watchOf(locks.getOrCreate('k', { get: place.get, create: never }));
    await settle();
    leaving.abort(new Error('left'));
    await locks.close();
    expect(String(left.error)).toBe('Error: left');
    expect(joined.error).toBeInstanceOf(InvalidArgumentError);
  });

  test('is waited for by others as long as their wait, and later callers look by themselves', async () => {
    const { clock, open, place } = scene();
    const { locks } = open();
    const create = place.creating(10);
    const stuck = watchOf(locks.getOrCreate('k', { get: never, create, wait: '100ms' }));
    await settle();
    const joined = watchOf(locks.getOrCreate('k', { get: place.get, create, wait: '200ms' }));
    await clock.advance(190);
    expect(joined.state).toBe('pending');
    await clock.advance(20);
    expect(joined.error).toBeInstanceOf(AcquireTimeoutError);
    expect(String(joined.error)).toMatch(/another call in this process.*`get`/);
    const later = watchOf(locks.getOrCreate('k', { get: place.get, create, wait: '200ms' }));
    await clock.advance(20);
    expect(later.value).toBe('value 1');
    expect(stuck.state).toBe('pending');
  });

  test('after others created, does not bound its own caller, and no lock is held meanwhile', async () => {
    const { clock, open, place } = scene();
    const [a, b] = [open().locks, open().locks];
    const held = await a.acquire('k');
    let looks = 0;
    const get = async (): Promise<string | null> => {
      looks += 1;
      if (looks === 2) await new Promise<void>((resolve) => void clock.timer(5_000, resolve));
      return place.value;
    };
    const slow = watchOf(b.getOrCreate('k', { get, create: never, wait: '1s' }));
    await clock.advance(100);
    await held.release();
    await clock.advance(3_000);
    expect(await a.inspect('k')).toBeNull();
    place.value = 'made by a';
    await clock.advance(3_000);
    expect(slow.value).toBe('made by a');
  });

  test('a caller that does not wait looks by itself while another looks', async () => {
    const { open, place } = scene();
    const { locks } = open();
    void locks.getOrCreate('k', { get: never, create: never });
    place.value = 'here';
    expect(await locks.getOrCreate('k', { get: place.get, create: never, wait: 0 })).toBe('here');
  });
});

describe('the caller whose functions run leaves, and they fail for that', () => {
  const request = new AsyncLocalStorage<string>();

  test('in the creation: the next caller that is still there creates, with its own functions', async () => {
    const { clock, open, place } = scene();
    const { locks } = open();
    const leaving = [new AbortController(), new AbortController()];
    const runs: (string | undefined)[] = [];
    const ask = (name: string, signal: AbortSignal | undefined): ReturnType<typeof watchOf<string>> =>
      request.run(name, () => {
        const creation = place.creating(200, false, signal);
        const create = (lease: Lease): Promise<string> => {
          runs.push(request.getStore());
          return creation(lease);
        };
        return watchOf(locks.getOrCreate('k', { get: place.get, create, ...(signal && { signal }) }));
      });
    const left = leaving.map(({ signal }, index) => ask(`leaving ${index}`, signal));
    const [third, fourth] = [ask('third', undefined), ask('fourth', undefined)];
    for (const controller of leaving) {
      await clock.advance(50);
      controller.abort(new Error('left'));
    }
    await clock.advance(300);
    expect(left.map(({ error }) => String(error))).toEqual(Array(2).fill('Error: left'));
    expect([third.value, fourth.value]).toEqual(Array(2).fill(place.value));
    expect(runs).toEqual(['leaving 0', 'leaving 1', 'third']);
    expect(place).toMatchObject({ begun: 3, wrong: [] });
    expect(await locks.inspect('k')).toBeNull();
  });

  test('in the look: the next caller looks', async () => {
    const { open, place } = scene();
    const { locks } = open();
    const leaving = new AbortController();
    const { signal } = leaving;
    const get = (): Promise<never> =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    const left = watchOf(locks.getOrCreate('k', { get, create: never, signal }));
    const joined = watchOf(locks.getOrCreate('k', { get: place.get, create: never }));
    await settle();
    place.value = 'here';
    leaving.abort(new Error('left'));
    await settle();
    expect(String(left.error)).toBe('Error: left');
    expect(joined.value).toBe('here');
  });
});
