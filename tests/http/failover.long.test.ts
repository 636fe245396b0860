/** Services that crash, hang and come back, under clients that hold and wait. */
import { createLocks, type Locks } from 'holdfast';
import { httpStore } from 'holdfast/http';
import { sqliteStore } from 'holdfast/sqlite';
import { afterEach, describe, expect, it } from 'vitest';
import { atTheEnd, claimOf, clearScene, freshFile, pause, ServiceProcess, say, until } from './scene.js';

afterEach(clearScene);

const CASE_MS_MAX = 120_000;

async function twoServices(): Promise<{ readonly a: ServiceProcess; readonly b: ServiceProcess }> {
  const file = freshFile();
  const a = await new ServiceProcess(file).start();
  const b = await new ServiceProcess(file).start();
  return { a, b };
}

function locksAt(...services: readonly ServiceProcess[]): Locks {
  const locks = createLocks(httpStore({ urls: services.map(({ url }) => url) }));
  atTheEnd(() => locks.close({ drain: 0 }));
  return locks;
}

describe('two services on one store, behind one list', () => {
  it.each(['SIGKILL', 'SIGSTOP'] as const)(
    'F32: one gets %s with waiters on it; they carry on at the other, in order',
    async (signal) => {
      const { a, b } = await twoServices();
      const holder = await locksAt(b, a).acquire('k', { ttl: '60s' });
      const order: number[] = [];
      const waiters: Promise<number>[] = [];
      for (const number of [1, 2, 3, 4]) {
        const locks = locksAt(a, b);
        waiters.push(
          locks.withLock(
            'k',
            async ({ token }) => {
              order.push(number);
              return token;
            },
            { ttl: '60s', wait: '90s' },
          ),
        );
        await until(async () => (await locks.inspect('k'))?.waiters.length === number, 'it is in the queue');
      }
      a.signal(signal);
      // Long enough to notice, and to be called at the other by then.
      await pause(4_000);
      expect(order).toEqual([]);
      await holder.release();
      const tokens = await Promise.all(waiters);
      expect(order).toEqual([1, 2, 3, 4]);
      expect(tokens).toEqual(tokens.toSorted((x, y) => x - y));
      a.signal('SIGCONT');
    },
    CASE_MS_MAX,
  );

  it('a lease taken through one is renewed and released through the other', async () => {
    const { a, b } = await twoServices();
    const locks = locksAt(a, b);
    const lost: unknown[] = [];
    const lease = await locks.acquire('k', { ttl: '3s' });
    lease.signal.addEventListener('abort', () => lost.push(lease.signal.reason));
    await a.kill();
    await pause(5_000);
    expect(lost).toEqual([]);
    expect(lease.held).toBe(true);
    await lease.release();
    expect(await locks.inspect('k')).toBeNull();
  }, 60_000);

  it(
    'with both gone nothing is granted and nothing is lost before its time; the first that is back is used',
    async () => {
      const { a, b } = await twoServices();
      const locks = locksAt(a, b);
      const lease = await locks.acquire('held', { ttl: '60s' });
      await a.kill();
      await b.kill();
      const waiting = locks.acquire('k', { wait: '60s' });
      await pause(1_000);
      expect(lease.held).toBe(true);
      await b.start();
      const late = await waiting;
      expect(late.held).toBe(true);
      await lease.release();
    },
    CASE_MS_MAX,
  );
});

describe('one service that is killed and started again', () => {
  it(
    'F1, F5: of contenders all the while one is inside at a time, no turn is lost, tokens rise',
    async () => {
      const file = freshFile();
      const service = await new ServiceProcess(file).start();
      let inside = 0;
      let overlaps = 0;
      const tokens: number[] = [];
      const TURNS = 40;
      const contend = async (locks: Locks): Promise<void> => {
        for (let turn = 0; turn < TURNS; turn++) {
          const work = async ({ token }: { readonly token: number }): Promise<void> => {
            inside += 1;
            overlaps += inside > 1 ? 1 : 0;
            tokens.push(token);
            await pause(10);
            inside -= 1;
          };
          await locks.withLock('counter', work, { ttl: '20s', wait: '90s' });
        }
      };
      const contenders = [1, 2, 3].map(() => contend(locksAt(service)));
      for (let crash = 0; crash < 3; crash++) {
        const before = tokens.length;
        await until(() => tokens.length > before + 5 || tokens.length === 3 * TURNS, 'they have got on');
        await service.restart();
      }
      await Promise.all(contenders);
      expect(overlaps).toBe(0);
      expect(tokens).toHaveLength(3 * TURNS);
      expect(new Set(tokens).size).toBe(tokens.length);
      expect(tokens).toEqual(tokens.toSorted((x, y) => x - y));
    },
    CASE_MS_MAX,
  );

  it(
    'listeners are told that nothing is heard, then that it is heard again, and hear it',
    async () => {
      const service = await new ServiceProcess(freshFile()).start();
      const store = httpStore({ url: service.url });
      atTheEnd(() => store.close());
      const heard: string[] = [];
      const hearing: boolean[] = [];
      const inbox = 'an-inbox-of-this-test';
      const stop = await store.listen?.(
        inbox,
        (key, why) => heard.push(`${why} ${key}`),
        (hears) => hearing.push(hears),
      );
      const first = claimOf('k', { inbox });
      expect((await say(store, first)).kind).toBe('granted');
      await service.kill();
      await until(() => hearing.length === 1, 'the loss was told');
      await service.start();
      // No command is needed for it.
      await until(() => hearing.length === 2, 'it hears again');
      expect(hearing).toEqual([false, true]);
      await say(store, claimOf('k'));
      await until(() => heard.includes('waiting k'), 'the hint came');
      await stop?.();
    },
    CASE_MS_MAX,
  );

  it('one that closes in good order ends its streams, and is left at once', async () => {
    const { a, b } = await twoServices();
    const store = httpStore({ urls: [a.url, b.url] });
    atTheEnd(() => store.close());
    const hearing: boolean[] = [];
    await store.listen?.(
      'an-inbox-of-this-test',
      () => undefined,
      (hears) => hearing.push(hears),
    );
    await a.finish();
    await until(() => hearing.length === 2, 'it hears at the other');
    expect(hearing).toEqual([false, true]);
    expect((await say(store, claimOf('k'))).kind).toBe('granted');
  }, 60_000);
});

it('what was granted through a service is the same lock as in its store', async () => {
  const file = freshFile();
  const service = await new ServiceProcess(file).start();
  const lease = await locksAt(service).acquire('ns/shared', { metadata: { why: 'ü' } });
  const near = createLocks(sqliteStore(file));
  atTheEnd(() => near.close());
  expect(await near.tryAcquire('ns/shared')).toBeNull();
  const seen = await near.inspect('ns/shared');
  expect(seen?.holders[0]).toMatchObject({ token: lease.token, metadata: { why: 'ü' } });
  await lease.release();
  expect(await near.tryAcquire('ns/shared')).not.toBeNull();
}, 60_000);
