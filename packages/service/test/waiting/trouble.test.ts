import { type Store, UnsupportedError } from 'holdfast';
import { memoryStore } from 'holdfast/memory';
import { type Command, NotExecutedError, type Reply } from 'holdfast/protocol';
import { faultyStore, seededRandom } from 'holdfast/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { ServiceEvents } from '../../src/service-events.js';
import { RequestQueues } from '../../src/waiting/request-queues.js';
import { ServiceClient } from '../../src/waiting/service-client.js';
import { clearScene, open, pause, stage, until } from '../scene.js';

afterEach(clearScene);

const ACQUIRE = '/v2/locks/a/b/acquire';

/** A store whose answers a test can keep back. */
function moody(inner: Store): Store & { mood: 'well' | 'away' | 'silent'; applied: number } {
  const store = {
    ...inner,
    mood: 'well' as 'well' | 'away' | 'silent',
    applied: 0,
    apply(commands: readonly Command[]) {
      store.applied += commands.length;
      if (store.mood === 'away') return commands.map(() => Promise.reject(new Error('The line is cut.')));
      const replies = inner.apply(commands);
      // Done, but nobody hears of it.
      if (store.mood === 'silent') return commands.map(() => new Promise<never>(() => undefined));
      return replies;
    },
  };
  return store;
}

describe('a store in trouble', () => {
  it('is 503 unknown: never busy, never free', async () => {
    const store = moody(memoryStore());
    const { post, get, acquire } = await stage({ store });
    const { hold } = await acquire('a/held');
    store.mood = 'away';
    const answers = await Promise.all([
      post(ACQUIRE, { ttl: '30s' }),
      post(ACQUIRE, { ttl: '30s', wait: 300 }),
      post('/v2/locks/a/held/renew', { hold, ttl: '30s' }),
      post('/v2/locks/a/held/release', { hold }),
    ]);
    for (const { status, body } of answers) expect([status, body.code]).toEqual([503, 'unknown']);
    store.mood = 'well';
    // What was unknown was taken back meanwhile, and the release that was not answered was not made.
    await until(async () => (await post(ACQUIRE, { ttl: 10 })).status === 200, 'it is free');
    expect((await get('/v2/locks/a/held')).body.holders).toHaveLength(1);
  });

  it('that throws instead of rejecting is in trouble like any other, and nobody is left in the queue', async () => {
    const inner = memoryStore();
    const fail = (): never => {
      throw new Error('Not even a promise.');
    };
    const broken = { ...inner, read: fail, probe: fail, apply: fail, listen: fail } as Store;
    const { get, post, service } = await stage({ store: broken });
    const answers = await Promise.all([
      get('/v2/locks/a/b'),
      get('/v2/probe'),
      post(ACQUIRE, { ttl: '30s', wait: 200, owner: 'nobody' }),
    ]);
    for (const { status, body } of answers) expect([status, body.code]).toEqual([503, 'unknown']);
    Object.assign(broken, { apply: inner.apply });
    const { status, body } = await post(ACQUIRE, { ttl: '30s', wait: '5s', owner: 'next' });
    expect([status, body.owner]).toEqual([200, 'next']);
    await service.close();
  });

  it('that takes its time is no trouble, however short a lock is asked for', async () => {
    const inner = memoryStore();
    const slow: Store = {
      ...inner,
      apply: (commands) => inner.apply(commands).map((reply) => pause(25).then(() => reply)),
    };
    const { acquire, post } = await stage({ store: slow });
    await acquire('a/b');
    for (const wait of [5, 20, 60]) {
      const { status, body } = await post(ACQUIRE, { ttl: 10, wait });
      expect([wait, status, body.code]).toEqual([wait, 423, 'busy']);
    }
  });

  it('P15: a grant or renewal that is heard of when it has expired is none', async () => {
    const inner = memoryStore();
    let slowMs = 150;
    const slow: Store = {
      ...inner,
      apply: (commands) => inner.apply(commands).map((reply) => pause(slowMs).then(() => reply)),
    };
    const { acquire, post } = await stage({ store: slow });
    for (const more of [{}, { wait: '2s' }, { hold: 'clients-own-secret.1' }]) {
      const { status, body } = await post(ACQUIRE, { ttl: 100, ...more });
      expect([more, status, body.code]).toEqual([more, 409, 'ended']);
    }
    slowMs = 0;
    const { hold } = await acquire('a/c', { ttl: '2s' });
    slowMs = 2_100;
    const { status, body } = await post('/v2/locks/a/c/renew', { ttl: '2s', hold });
    expect([status, body.code]).toEqual([409, 'lost']);
  });

  it('F5: a grant whose answer was lost is given back once the store is heard again', async () => {
    const store = moody(memoryStore());
    const { post, service } = await stage({ store });
    store.mood = 'silent';
    const { status, body } = await post(ACQUIRE, { ttl: '60s', wait: 200 });
    expect([status, body.code]).toEqual([503, 'unknown']);
    store.mood = 'well';
    await until(async () => (await store.read('a/b')) === null, 'it is given back');
    await service.close();
  });

  it('a client with a hold of its own asks again, and gets the grant whose answer was lost', async () => {
    const store = moody(memoryStore());
    const { post } = await stage({ store });
    const hold = 'clients-own-secret.1';
    store.mood = 'silent';
    const lost = await post(ACQUIRE, { ttl: '60s', wait: 200, hold });
    expect(lost.status).toBe(503);
    store.mood = 'well';
    const token = (await store.read('a/b'))?.holders[0]?.token;
    expect((await post(ACQUIRE, { ttl: '60s', hold })).body).toMatchObject({ token, hold });
  });

  it('F5: a client that leaves while its claim is on its way leaves no grant behind', async () => {
    const store = moody(memoryStore());
    const { url } = await stage({ store });
    store.mood = 'silent';
    const leaver = open(url, ACQUIRE, { ttl: '60s', wait: '20s' });
    await until(async () => (await store.read('a/b')) !== null, 'it was granted, unheard');
    leaver.leave();
    await pause(50);
    store.mood = 'well';
    await until(async () => (await store.read('a/b')) === null, 'it is given back');
  });

  it('waiters carry on when the store comes back', async () => {
    const store = moody(memoryStore());
    const { url, acquire, post } = await stage({ store });
    const { hold } = await acquire('a/b');
    const waiter = open(url, ACQUIRE, { ttl: '30s', wait: '20s' });
    await until(async () => (await store.read('a/b'))?.waiters.length === 1, 'it waits');
    store.mood = 'away';
    await pause(1_000);
    store.mood = 'well';
    await post('/v2/locks/a/b/release', { hold });
    expect((await waiter.answer).status).toBe(200);
  });

  it('a store that is closed refuses: 501, and no waiting', async () => {
    const store = memoryStore();
    const { post } = await stage({ store });
    await store.close();
    for (const wait of [0, '20s']) {
      const { status, body } = await post(ACQUIRE, { ttl: '30s', wait });
      expect([status, body.code]).toEqual([501, 'unsupported']);
    }
  });

  it('without wake-ups and without a line in the store, waiting works all the same', async () => {
    const { listen: _listen, ...mute } = memoryStore();
    const plain: Store = {
      ...mute,
      traits: { ...mute.traits, push: false, queue: false },
      apply: (commands) =>
        mute.apply(commands.map((one) => (one.kind === 'claim' ? { ...one, queue: false } : one))),
    };
    const { url, acquire, post, get } = await stage({ store: plain });
    const { hold } = await acquire('a/b');
    const order: string[] = [];
    const all = [];
    for (const owner of ['first', 'second', 'third']) {
      const pending = open(url, ACQUIRE, { ttl: '30s', wait: '20s', owner });
      await until(async () => (await get('/v2/locks/a/b')).body.waiting === all.length + 1, `${owner} waits`);
      all.push(
        pending.answer.then(async ({ body }) => {
          order.push(body.owner as string);
          await post('/v2/locks/a/b/release', { hold: body.hold });
        }),
      );
    }
    await post('/v2/locks/a/b/release', { hold });
    await Promise.all(all);
    expect(order).toEqual(['first', 'second', 'third']);
  });

  it('on a bad network at most one holds at a time, everybody comes to an end, and nothing stays', async () => {
    const seed = Number(process.env.HOLDFAST_SEED ?? Date.now() % 1_000_000);
    const random = seededRandom(seed);
    const inner = memoryStore();
    const faults = {
      commandLost: 0.05,
      replyLost: 0.05,
      commandLate: 0.05,
      replyLate: 0.05,
      doubled: 0.05,
      hintLost: 0.2,
    };
    const store = faultyStore(inner, { seed, faults, lateMsMax: 60 });
    const { url, post } = await stage({ store });
    let inside = 0;
    let most = 0;
    let granted = 0;
    const client = async (): Promise<void> => {
      for (let round = 0; round < 5; round++) {
        const pending = open(url, ACQUIRE, { ttl: '20s', wait: '15s' });
        if (random.chance(0.2)) {
          await pause(random.between(0, 40));
          pending.leave();
          continue;
        }
        const { status, body } = await pending.answer;
        expect([200, 423, 503], `seed ${seed}`).toContain(status);
        if (status !== 200) continue;
        granted += 1;
        inside += 1;
        most = Math.max(most, inside);
        await pause(2);
        inside -= 1;
        let released = await post('/v2/locks/a/b/release', { hold: body.hold });
        while (released.status !== 200) released = await post('/v2/locks/a/b/release', { hold: body.hold });
      }
    };
    await Promise.all(Array.from({ length: 8 }, client));
    expect(most, `seed ${seed}`).toBe(1);
    expect(granted, `seed ${seed}`).toBeGreaterThan(5);
    store.heal();
    await until(async () => (await inner.read('a/b')) === null, `nothing stays (seed ${seed})`);
  }, 120_000);
});

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
