import { afterEach, describe, expect, it } from 'vitest';
import { isLongRun } from '../../../../tests/long-run.js';
import {
  clearScene,
  type Grant,
  open,
  type Pending,
  pause,
  STORES,
  type Stage,
  stage,
  until,
} from '../scene.js';

afterEach(clearScene);

/** Waiters at once. */
const COUNT = isLongRun ? 1_000 : 300;
const ACQUIRE = '/v2/locks/a/b/acquire';
const waiting = ({ get }: Stage, path = 'a/b') =>
  get(`/v2/locks/${path}`).then(({ body }) => body.waiting as number);

for (const [name, newStore] of Object.entries(STORES)) {
  describe(`waiting on ${name}`, () => {
    it('an acquire with wait is held open until the lock is released', async () => {
      const scene = await stage({ store: newStore() });
      const first = await scene.acquire('a/b');
      const second = open(scene.url, ACQUIRE, { ttl: '30s', wait: '20s', owner: 'bert' });
      await until(async () => (await waiting(scene)) === 1, 'it waits');
      const { body } = await scene.get('/v2/locks/a/b');
      expect(body.waiters).toMatchObject([{ owner: 'bert', permits: 1, capacity: 1 }]);
      await scene.post('/v2/locks/a/b/release', { hold: first.hold });
      const { status, body: grant } = await second.answer;
      expect([status, grant.owner]).toEqual([200, 'bert']);
      expect(grant.token).toBeGreaterThan(first.token);
      expect((await scene.get('/v2/locks/a/b')).body).toMatchObject({
        waiting: 0,
        holders: [{ owner: 'bert' }],
      });
    });

    it('an acquire with wait is granted when the holder expires', async () => {
      const scene = await stage({ store: newStore() });
      await scene.acquire('a/b', { ttl: 400 });
      const { status } = await open(scene.url, ACQUIRE, { ttl: '30s', wait: '20s' }).answer;
      expect(status).toBe(200);
    });

    it('waiters are granted in the order in which they came', async () => {
      const scene = await stage({ store: newStore() });
      const { hold } = await scene.acquire('a/b');
      const order: number[] = [];
      const all = [];
      for (let number = 0; number < 12; number++) {
        const pending = open(scene.url, ACQUIRE, { ttl: '30s', wait: '25s', owner: `w${number}` });
        all.push(
          pending.answer.then(async ({ status, body }) => {
            expect(status).toBe(200);
            order.push(number);
            await scene.post('/v2/locks/a/b/release', { hold: body.hold });
          }),
        );
        await until(async () => (await waiting(scene)) === number + 1, `${number + 1} wait`);
      }
      const { body } = await scene.get('/v2/locks/a/b');
      expect((body.waiters as { owner: string }[]).map(({ owner }) => owner)).toEqual(
        Array.from({ length: 12 }, (_, number) => `w${number}`),
      );
      await scene.post('/v2/locks/a/b/release', { hold });
      await Promise.all(all);
      expect(order).toEqual(Array.from({ length: 12 }, (_, number) => number));
    });

    it('who comes to the front is shown as waiting since it came, not since it is in front', async () => {
      const scene = await stage({ store: newStore() });
      const { hold } = await scene.acquire('a/b');
      const pending = [];
      for (const [number, owner] of ['first', 'second', 'third'].entries()) {
        pending.push(open(scene.url, ACQUIRE, { ttl: '30s', wait: '25s', owner }));
        await until(async () => (await waiting(scene)) === number + 1, `${owner} waits`);
      }
      const waiters = async () =>
        (await scene.get('/v2/locks/a/b')).body.waiters as { owner: string; since: number }[];
      const before = await waiters();
      await pause(300);
      await scene.post('/v2/locks/a/b/release', { hold });
      await pending[0]?.answer;
      const inStore = async () => (await scene.store.read('a/b'))?.waiters ?? [];
      await until(async () => (await inStore()).length === 1, 'the second stands at the store');
      const [head] = await inStore();
      expect(head?.since).toBeGreaterThanOrEqual((before[1]?.since ?? 0) + 300);
      expect(await waiters()).toEqual(before.slice(1));
    });

    it('a wait that ends without the lock is 423 busy, and leaves nothing', async () => {
      const scene = await stage({ store: newStore() });
      await scene.acquire('a/b', { owner: 'ada' });
      const short = [1, 2, 3].map(() => open(scene.url, ACQUIRE, { ttl: '30s', wait: 300 }).answer);
      for (const { status, body } of await Promise.all(short)) {
        expect([status, body.code]).toEqual([423, 'busy']);
        expect(body.holders).toMatchObject([{ owner: 'ada' }]);
      }
      await until(async () => (await waiting(scene)) === 0, 'nobody waits');
      expect((await scene.store.read('a/b'))?.waiters).toEqual([]);
    });

    it('F5: a client that goes away while it waits leaves nothing, whether first in the queue or not', async () => {
      const scene = await stage({ store: newStore() });
      const { hold } = await scene.acquire('a/b');
      const leavers = [];
      for (let number = 0; number < 3; number++) {
        leavers.push(open(scene.url, ACQUIRE, { ttl: '30s', wait: '25s', owner: `w${number}` }));
        await until(async () => (await waiting(scene)) === number + 1, `${number + 1} wait`);
      }
      leavers[1]?.leave();
      await until(async () => (await waiting(scene)) === 2, 'the second has left');
      leavers[0]?.leave();
      await until(async () => (await waiting(scene)) === 1, 'the first has left');
      await scene.post('/v2/locks/a/b/release', { hold });
      const third = await leavers[2]?.answer;
      expect([third?.status, third?.body.owner]).toEqual([200, 'w2']);
      expect((await scene.store.read('a/b'))?.waiters).toEqual([]);
      await scene.post('/v2/locks/a/b/release', { hold: third?.body.hold });
      expect(await scene.store.read('a/b')).toBeNull();
    });

    it('a place in the queue is left to the next who is like the one that went away', async () => {
      const scene = await stage({ store: newStore() });
      await scene.acquire('a/b');
      const first = open(scene.url, ACQUIRE, { ttl: '30s', wait: '25s', owner: 'same' });
      await until(
        async () => (await scene.store.read('a/b'))?.waiters.length === 1,
        'one stands at the store',
      );
      const since = (await scene.store.read('a/b'))?.waiters[0]?.since;
      open(scene.url, ACQUIRE, { ttl: '30s', wait: '25s', owner: 'same' });
      await until(async () => (await waiting(scene)) === 2, 'two wait');
      await pause(20);
      first.leave();
      await until(async () => (await waiting(scene)) === 1, 'one has left');
      expect((await scene.store.read('a/b'))?.waiters).toMatchObject([{ owner: 'same', since }]);
    });

    it('a place in the queue is left to nobody who would overtake others by it', async () => {
      const scene = await stage({ store: newStore() });
      const capacity = 2;
      const { hold } = await scene.acquire('a/b', { capacity, permits: 2 });
      const order: number[] = [];
      const waiters: Pending[] = [];
      // More than ask the store at a time.
      for (let number = 0; number < 18; number += 1) {
        const waiter = open(scene.url, ACQUIRE, { ttl: '30s', wait: '25s', capacity });
        waiters.push(waiter);
        await until(async () => (await waiting(scene)) === number + 1, `${number} waits`);
        void Promise.allSettled([waiter.answer.then(() => order.push(number))]);
      }
      waiters[0]?.leave();
      await until(async () => (await waiting(scene)) === 17, 'the first has left');
      await scene.post('/v2/locks/a/b/release', { hold });
      await until(() => order.length === 2, 'two have it');
      expect(order.toSorted((a, b) => a - b)).toEqual([1, 2]);
    });

    it('readers that wait for a writer come in together', async () => {
      const scene = await stage({ store: newStore() });
      const { hold } = await scene.acquire('a/b', { mode: 'write' });
      const readers = Array.from({ length: 8 }, () => {
        return open(scene.url, ACQUIRE, { ttl: '30s', wait: '25s', mode: 'read' }).answer;
      });
      await until(async () => (await waiting(scene)) === 8, 'all wait');
      await scene.post('/v2/locks/a/b/release', { hold });
      for (const { status } of await Promise.all(readers)) expect(status).toBe(200);
      expect((await scene.get('/v2/locks/a/b')).body.holders).toHaveLength(8);
    });

    it('a wait ends in time also for those behind a grant that others had a moment ago', async () => {
      const scene = await stage({ store: newStore() });
      const capacity = 2;
      const first = await scene.acquire('a/b', { capacity });
      await scene.acquire('a/b', { capacity });
      const long = open(scene.url, ACQUIRE, { ttl: '30s', wait: '25s', capacity });
      await until(async () => (await waiting(scene)) === 1, 'one waits');
      const sinceMs = Date.now();
      const short = open(scene.url, ACQUIRE, { ttl: '30s', wait: 400, capacity }).answer;
      await until(async () => (await waiting(scene)) === 2, 'two wait');
      await scene.post('/v2/locks/a/b/release', { hold: first.hold });
      expect((await long.answer).status).toBe(200);
      expect((await short).status).toBe(423);
      expect(Date.now() - sinceMs).toBeLessThan(15_000);
    });

    it('a semaphore is passed on permit by permit', async () => {
      const scene = await stage({ store: newStore() });
      const capacity = 3;
      let inside = 0;
      let most = 0;
      const work = async (): Promise<void> => {
        const { status, body } = await open(scene.url, ACQUIRE, { ttl: '30s', wait: '25s', capacity }).answer;
        expect(status).toBe(200);
        inside += 1;
        most = Math.max(most, inside);
        // The first wait until all permits are taken.
        await until(async () => most === capacity, 'three are inside');
        inside -= 1;
        await scene.post('/v2/locks/a/b/release', { hold: body.hold });
      };
      await Promise.all(Array.from({ length: 20 }, work));
      expect(most).toBe(capacity);
      expect(await scene.store.read('a/b')).toBeNull();
    });
  });
}

describe('a hold that the client knows', () => {
  it('makes a repeated acquire the same grant, also behind others who wait', async () => {
    const scene = await stage();
    const hold = 'my-own-secret-text.7';
    const first = await scene.acquire('a/b', { hold });
    expect(first.hold).toBe(hold);
    open(scene.url, ACQUIRE, { ttl: '30s', wait: '20s' });
    await until(async () => (await waiting(scene)) === 1, 'another waits');
    for (const wait of [0, '20s']) {
      const again = await scene.acquire('a/b', { hold, wait });
      expect([again.hold, again.token, again.expiresAt]).toEqual([hold, first.token, first.expiresAt]);
    }
  });

  it('an Idempotency-Key does the same; another key, or another lock, is another grant', async () => {
    const { post } = await stage();
    const headers = { 'idempotency-key': '5f8e4f70-8d5c-4a39-8a51-2f5e0f4a1c55' };
    const body = { ttl: '30s' };
    const first = await post(ACQUIRE, body, headers);
    const again = await post(ACQUIRE, { ...body, wait: '1s' }, headers);
    expect(again.body).toMatchObject({ hold: first.body.hold, token: first.body.token });
    const other = await post('/v2/locks/a/c/acquire', body, headers);
    expect(other.body.hold).not.toBe(first.body.hold);
    const foreign = await post(ACQUIRE, body, { 'idempotency-key': 'another-key-of-another-one' });
    expect(foreign.status).toBe(423);
    const guessable = await post(ACQUIRE, body, { 'idempotency-key': 'job-1' });
    expect([guessable.status, guessable.body.code]).toEqual([400, 'invalid-argument']);
  });

  it('with another owner, mode or metadata is 422 reused, not the grant of the first request', async () => {
    const { post, get } = await stage();
    const body = { ttl: '30s', owner: 'ada', metadata: { job: 1 } };
    const own = { hold: 'my-own-secret-text.7' };
    const idempotent = { 'idempotency-key': '5f8e4f70-8d5c-4a39-8a51-2f5e0f4a1c55' };
    for (const [name, more, headers] of [
      ['own', own, {}],
      ['idempotent', {}, idempotent],
    ] as const) {
      const path = `/v2/locks/a/${name}/acquire`;
      const first = await post(path, { ...body, ...more }, headers);
      expect(first.status).toBe(200);
      // Within one millisecond of the store's clock a repeated grant cannot be told from a new one.
      await pause(2);
      for (const [changed, words] of [
        [{ owner: 'eve' }, 'differs in: owner.'],
        [{ metadata: { job: 2 } }, 'differs in: metadata.'],
        [{ mode: 'write' }, 'differs in: permits, capacity.'],
      ] as const) {
        const again = await post(path, { ...body, ...more, ...changed }, headers);
        expect([again.status, again.body.code]).toEqual([422, 'reused']);
        expect(again.body.detail).toContain(words);
        expect(again.body.hold).toBeUndefined();
      }
      const same = await post(path, { ...body, ...more, ttl: '60s', wait: '1s' }, headers);
      expect(same.body).toMatchObject({ hold: first.body.hold, token: first.body.token, owner: 'ada' });
      expect((await get(`/v2/locks/a/${name}`)).body.holders).toMatchObject([{ owner: 'ada' }]);
    }
  });

  it('is 409 ended once it was released: a late repetition takes nothing', async () => {
    const { acquire, post, store } = await stage();
    const hold = 'my-own-secret-text.7';
    await acquire('a/b', { hold });
    await post('/v2/locks/a/b/release', { hold });
    for (const wait of [0, 500]) {
      const late = await post(ACQUIRE, { ttl: '30s', hold, wait });
      expect([late.status, late.body.code]).toEqual([409, 'ended']);
    }
    expect(await store.read('a/b')).toBeNull();
    await acquire('a/b', { hold: 'my-own-secret-text.8' });
  });

  it('keeps its place when the connection breaks and it asks again', async () => {
    const scene = await stage();
    const { hold } = await scene.acquire('a/b');
    const mine = { ttl: '30s', wait: '20s', owner: 'mine', hold: 'my-own-secret-text.1' };
    const broken = open(scene.url, ACQUIRE, mine);
    await until(async () => (await waiting(scene)) === 1, 'it waits');
    const other = open(scene.url, ACQUIRE, { ttl: '30s', wait: '20s', owner: 'other' });
    await until(async () => (await waiting(scene)) === 2, 'another waits');
    // The service may not have noticed yet that the first connection is gone.
    const again = open(scene.url, ACQUIRE, mine);
    const { status, body } = await broken.answer;
    expect([status, body.code]).toEqual([409, 'superseded']);
    expect(await waiting(scene)).toBe(2);
    await scene.post('/v2/locks/a/b/release', { hold });
    expect((await again.answer).body).toMatchObject({ owner: 'mine', hold: mine.hold });
    other.leave();
  });
});

describe('many waiters', () => {
  it(`${COUNT} on one key cost the store what one costs, and are granted in order`, async () => {
    const memory = STORES.memory?.();
    if (!memory) throw new Error('There is no memory store.');
    let commands = 0;
    const counted = {
      ...memory,
      apply: (batch: Parameters<typeof memory.apply>[0]) => {
        commands += batch.length;
        return memory.apply(batch);
      },
    };
    const scene = await stage({ store: counted });
    const { hold } = await scene.acquire('a/b');
    const order: string[] = [];
    const all: Promise<void>[] = [];
    for (let number = 0; number < COUNT; number++) {
      const pending = open(scene.url, ACQUIRE, { ttl: '30s', wait: '60s', owner: `w${number}` });
      all.push(
        pending.answer.then(async ({ body }) => {
          order.push((body as unknown as Grant).owner);
          await scene.post('/v2/locks/a/b/release', { hold: body.hold });
        }),
      );
      // Connections come in the order in which they were opened only when one is there before the next.
      if (number % 50 === 49)
        await until(async () => (await waiting(scene)) === number + 1, 'they wait', 110_000);
    }
    const before = commands;
    await pause(2_000);
    expect(commands - before).toBeLessThan(10);
    await scene.post('/v2/locks/a/b/release', { hold });
    await Promise.all(all);
    const blocks = order.map((owner) => Math.floor(Number(owner.slice(1)) / 50));
    expect(blocks).toEqual([...blocks].sort((a, b) => a - b));
    expect(order).toHaveLength(COUNT);
    expect(await scene.store.read('a/b')).toBeNull();
  }, 300_000);

  it('no more wait than may: the next is 429', async () => {
    const scene = await stage({ limits: { waiters: 2 } });
    await scene.acquire('a/b');
    const two = [1, 2].map(() => open(scene.url, ACQUIRE, { ttl: '30s', wait: '20s' }));
    await until(async () => (await waiting(scene)) === 2, 'two wait');
    const third = await scene.post('/v2/locks/a/c/acquire', { ttl: '30s', wait: '20s' });
    expect([third.status, third.body.code]).toEqual([429, 'rate-limited']);
    for (const one of two) one.leave();
  });
});
