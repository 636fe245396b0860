import { type Store, UnsupportedError } from 'holdfast';
import { memoryStore } from 'holdfast/memory';
import { NotExecutedError, type Reply } from 'holdfast/protocol';
import { afterEach, describe, expect, it } from 'vitest';
import { ServiceEvents } from '../../src/service-events.js';
import { RequestQueues } from '../../src/waiting/request-queues.js';
import { ServiceClient } from '../../src/waiting/service-client.js';
import { clearScene, open, pause, stage, until } from '../scene.js';

afterEach(clearScene);

const ACQUIRE = '/v2/locks/a/b/acquire';

describe('what concerns one request alone', () => {
  it('a kind of lock that the store refuses ends the requests for it, and nobody else who waits', async () => {
    const inner = memoryStore();
    const plain: Store = {
      ...inner,
      apply: (commands) =>
        commands.map((command) => {
          if (command.kind === 'claim' && command.capacity > 1)
            return Promise.reject(new UnsupportedError('No semaphores here.'));
          return inner.apply([command])[0] as Promise<Reply>;
        }),
    };
    const { url, acquire, post, get } = await stage({ store: plain });
    const { hold } = await acquire('a/b');
    const others = [];
    for (const [more, count] of [
      [{ capacity: 3 }, 1],
      [{}, 2],
    ] as const) {
      others.push(open(url, ACQUIRE, { ttl: '30s', wait: '20s', ...more }));
      if (count === 1) expect((await others[0]?.answer)?.status).toBe(501);
    }
    await until(async () => (await get('/v2/locks/a/b')).body.waiting === 1, 'one waits');
    const refused = await post(ACQUIRE, { ttl: '30s', wait: '1s', capacity: 3 });
    expect(refused.status).not.toBe(200);
    await post('/v2/locks/a/b/release', { hold });
    expect((await others[1]?.answer)?.status).toBe(200);
  });

  it('readers of different owners keep their places before a writer that comes later', async () => {
    const scene = await stage();
    const elsewhere = await stage({ store: scene.store });
    const { hold } = await scene.acquire('a/b', { mode: 'write' });
    const order: string[] = [];
    const wait = (at: typeof scene, owner: string, mode: string) =>
      open(at.url, ACQUIRE, { ttl: '30s', wait: '25s', owner, mode }).answer.then(
        async ({ status, body }) => {
          expect(status).toBe(200);
          order.push(owner);
          await at.post('/v2/locks/a/b/release', { hold: body.hold });
        },
      );
    const all: Promise<void>[] = [];
    for (const owner of ['ada', 'bert', 'cleo']) {
      all.push(wait(scene, owner, 'read'));
      await until(
        async () => (await scene.store.read('a/b'))?.waiters.length === all.length,
        `${owner} waits`,
      );
    }
    all.push(wait(elsewhere, 'writer', 'write'));
    await until(async () => (await scene.store.read('a/b'))?.waiters.length === 4, 'the writer waits');
    await scene.post('/v2/locks/a/b/release', { hold });
    await Promise.all(all);
    expect(order.at(-1)).toBe('writer');
  });

  it('waiters are shown by the clock of the store, which is an hour behind, with their whole wait', async () => {
    const storeNow = () => Date.now() - 3_600_000;
    const { url, acquire, get, post } = await stage({ store: memoryStore({ now: storeNow }) });
    const { hold } = await acquire('a/b');
    const since = async (): Promise<readonly number[]> => {
      const waiters = (await get('/v2/locks/a/b')).body.waiters as readonly { readonly since: number }[];
      return waiters.map((waiter) => waiter.since);
    };
    const fromMs = storeNow();
    const all: ReturnType<typeof open>[] = [];
    for (const owner of ['ada', 'bert', 'cleo']) {
      all.push(open(url, ACQUIRE, { ttl: '30s', wait: '25s', owner }));
      await until(async () => (await since()).length === all.length, `${owner} waits`);
    }
    const before = await since();
    for (const at of before) {
      expect(at).toBeGreaterThanOrEqual(fromMs - 1_000);
      expect(at).toBeLessThanOrEqual(storeNow());
    }
    await pause(300);
    await post('/v2/locks/a/b/release', { hold });
    await all[0]?.answer;
    await until(async () => (await since()).length === 2, 'two wait');
    expect(await since()).toEqual(before.slice(1));
  });

  it('a short wait behind a hold of a client is answered in time, with who holds the lock', async () => {
    const { url, acquire, post } = await stage();
    await acquire('a/b', { owner: 'ada' });
    const first = open(url, ACQUIRE, { ttl: '30s', wait: '20s', hold: 'my-own-secret-text.1' });
    await pause(100);
    const { status, body } = await post(ACQUIRE, { ttl: 300, wait: 100 });
    expect([status, body.code]).toEqual([423, 'busy']);
    expect(body.holders).toMatchObject([{ owner: 'ada' }]);
    first.leave();
  });

  it('a store that is away for a moment is asked again: a renewal is not refused', async () => {
    const inner = memoryStore();
    let isAway = false;
    const store: Store = {
      ...inner,
      apply: (commands) =>
        isAway
          ? commands.map(() => Promise.reject(new NotExecutedError('nobody listens there', 'while-waiting')))
          : inner.apply(commands),
    };
    const { acquire, post } = await stage({ store });
    const { hold } = await acquire('a/b');
    isAway = true;
    const renewed = post('/v2/locks/a/b/renew', { hold, ttl: '30s' });
    await pause(500);
    isAway = false;
    expect((await renewed).status).toBe(200);
  });

  it.each([
    ['while its claim is on its way', 0],
    ['so, and meanwhile the process stands still,', 400],
  ])('a wait that ends %s is answered by that claim', async (_, blockedMs) => {
    /** Claims whose replies are on their way, by hold. */
    const underWay = new Map<string, number>();
    /** Holds whose claim the machine answered so late that it was sent again: what became of the first is unknown. */
    const late = new Set<string>();
    const inner = memoryStore();
    let claims = 0;
    let blockedFromMs = performance.now() + 2_250;
    const slow: Store = {
      ...inner,
      apply: (commands) => {
        if (commands.some(({ kind }) => kind === 'claim')) claims += 1;
        const isSlow = claims > 2;
        if (performance.now() > blockedFromMs) {
          blockedFromMs = Number.POSITIVE_INFINITY;
          void pause(50).then(() => {
            for (const untilMs = performance.now() + blockedMs; performance.now() < untilMs; );
          });
        }
        return inner.apply(commands).map((reply, index) => {
          const command = commands[index];
          if (!isSlow || command?.kind !== 'claim') return reply;
          const { process } = command.hold;
          const count = underWay.get(process) ?? 0;
          if (count > 0) late.add(process);

          underWay.set(process, count + 1);
          return pause(100).then(() => {
            underWay.set(process, (underWay.get(process) ?? 1) - 1);
            return reply;
          });
        });
      },
    };
    const { acquire, post } = await stage({ store: slow });
    await acquire('a/b');
    // The safety poll asks every 700 ms, so a claim is under way at some of these ends.
    const waits = [2_350, 2_450, 2_550, 2_650, 2_750, 2_850];
    const answers = await Promise.all(
      waits.map(async (wait, name) => {
        const process = `my-own-secret-text-${name}`;
        const { status, body } = await post(ACQUIRE, { ttl: '30s', wait, hold: `${process}.1` });
        return { process, answer: [status, body.code] };
      }),
    );
    for (const { process, answer } of answers) {
      if (!late.has(process)) expect(answer).toEqual([423, 'busy']);
      else expect([[423, 'busy'].join(), [503, 'unknown'].join()]).toContain(answer.join());
    }
  });

  it('a client that has gone before its turn to queue leaves no queue behind', async () => {
    const events = new ServiceEvents();
    const queues = new RequestQueues(new ServiceClient(memoryStore(), events), events, 10);
    const request = {
      ...{ key: 'a/b', name: 'a/b', owner: 'o', permits: 1, capacity: 1, ttlMs: 30_000, waitMs: 1_000 },
      ...{ queue: true, minHoldMs: 0, metadata: null, sinceMs: 0, signal: AbortSignal.abort() },
      hold: { process: 'my-own-secret-text', number: 1 },
      principal: 'anonymous',
    };
    expect((await queues.acquire(request)).kind).toBe('aborted');
    expect(queues.all()).toEqual([]);
    expect(await queues.client.store.read('a/b')).toBeNull();
    await queues.client.close();
  });
});
