import type { Store } from 'holdfast';
import { memoryStore } from 'holdfast/memory';
import type { Command } from 'holdfast/protocol';
import { faultyStore, seededRandom } from 'holdfast/testkit';
import { afterEach, describe, expect, it } from 'vitest';
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
