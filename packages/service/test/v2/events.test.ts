import { afterEach, describe, expect, it } from 'vitest';
import {
  type Body,
  clearScene,
  type EventStream,
  listen,
  open,
  STORES,
  type Stage,
  stage,
  until,
} from '../scene.js';

afterEach(clearScene);

const has = ({ events }: EventStream, event: string, key?: string): boolean =>
  events.some((one) => one.event === event && (key === undefined || one.data.key === key));

async function watched(scene: Stage, path = '/v2/events'): Promise<EventStream> {
  const stream = await listen(scene.url, path);
  await until(() => has(stream, 'ready'), 'it is ready');
  return stream;
}

for (const [name, newStore] of Object.entries(STORES)) {
  describe(`events on ${name}`, () => {
    it('tell what there is, and then what changes: appeared, changed, renewed, gone', async () => {
      const scene = await stage({ store: newStore() });
      await scene.acquire('a/old');
      const stream = await watched(scene);
      expect(stream.events.map(({ event, data }) => [event, data.key])).toEqual([
        ['appeared', 'a/old'],
        ['ready', undefined],
      ]);
      const { hold } = await scene.acquire('a/new', { owner: 'ada', metadata: { a: 1 } });
      await until(() => has(stream, 'appeared', 'a/new'), 'it appears');
      const appeared = stream.events.find(({ data }) => data.key === 'a/new')?.data as Body;
      expect(appeared.holders).toMatchObject([{ owner: 'ada', metadata: { a: 1 } }]);
      await scene.post('/v2/locks/a/new/renew', { hold, ttl: '5m' });
      await until(() => has(stream, 'renewed', 'a/new'), 'it is renewed');
      const waiter = open(scene.url, '/v2/locks/a/new/acquire', { ttl: '30s', wait: '20s' });
      await until(() => has(stream, 'changed', 'a/new'), 'somebody waits');
      waiter.leave();
      await scene.post('/v2/locks/a/new/release', { hold });
      await until(() => has(stream, 'gone', 'a/new'), 'it is gone');
    });

    it('are seen too when another process made them', async () => {
      const scene = await stage({ store: newStore() });
      const stream = await watched(scene);
      const hold = { process: 'elsewhere', number: 1 };
      const claim = {
        kind: 'claim',
        key: 'a/far',
        hold,
        owner: 'far',
        permits: 1,
        capacity: 1,
        ttlMs: 30_000,
      } as const;
      await Promise.all(scene.store.apply([{ ...claim, queue: false, inbox: null, metadata: null }]));
      await until(() => has(stream, 'appeared', 'a/far'), 'it appears');
    });

    it('of one namespace are of no other', async () => {
      const scene = await stage({ store: newStore() });
      const stream = await watched(scene, '/v2/events?namespace=b');
      await scene.acquire('a/x');
      await scene.acquire('b/x');
      await until(() => has(stream, 'appeared', 'b/x'), 'it appears');
      expect(stream.text()).not.toContain('a/x');
    });

    it('wake-ups of an inbox come as they do from the store', async () => {
      const scene = await stage({ store: newStore() });
      const inbox = 'inbox-0123456789abcdef';
      const stream = await listen(scene.url, `/v2/inboxes/${inbox}/events`);
      await until(() => has(stream, 'ready'), 'it is ready');
      const claim = {
        kind: 'claim',
        key: 'a/b',
        owner: 'o',
        permits: 1,
        capacity: 1,
        ttlMs: 30_000,
        metadata: null,
      };
      const first = { process: 'first', number: 1 };
      const second = { process: 'second', number: 1 };
      await scene.post('/v2/batch', {
        commands: [
          { ...claim, hold: first, queue: false, inbox: null },
          { ...claim, hold: second, queue: true, inbox },
          { kind: 'release', key: 'a/b', hold: first, minHoldMs: 0 },
        ],
      });
      await until(() => has(stream, 'wake', 'a/b'), 'it is woken');
      expect(stream.events.find(({ event }) => event === 'wake')?.data).toEqual({ key: 'a/b', why: 'turn' });
    });
  });
}

describe('the watch behind the events', () => {
  const memory = STORES.memory as NonNullable<typeof STORES.memory>;

  it('is shared: many listeners cost the store what one costs, and none cost nothing', async () => {
    const inner = memory();
    let lists = 0;
    const counted = {
      ...inner,
      list(query: Parameters<typeof inner.list>[0]) {
        lists += 1;
        return inner.list(query);
      },
    };
    const scene = await stage({ store: counted });
    const streams = await Promise.all(Array.from({ length: 20 }, () => watched(scene)));
    lists = 0;
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(lists).toBeGreaterThan(0);
    expect(lists).toBeLessThan(5);
    for (const stream of streams) stream.close();
    await new Promise((resolve) => setTimeout(resolve, 300));
    lists = 0;
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(lists).toBe(0);
    // And begins anew for whoever comes later.
    await scene.acquire('a/later');
    expect(has(await watched(scene), 'appeared', 'a/later')).toBe(true);
  });

  it('says when the store does not answer, and when it does again', async () => {
    const inner = memory();
    let broken = false;
    const fragile = {
      ...inner,
      list(query: Parameters<typeof inner.list>[0]) {
        if (broken) throw new Error('The line is cut.');
        return inner.list(query);
      },
    };
    const scene = await stage({ store: fragile });
    const stream = await watched(scene);
    broken = true;
    await until(() => has(stream, 'trouble'), 'there is trouble');
    broken = false;
    await until(() => stream.events.at(-1)?.event === 'ready', 'it is ready again');
  });

  it('no more streams than may be open: the next is 429', async () => {
    const scene = await stage({ limits: { streams: 1 } });
    const first = await watched(scene);
    expect((await scene.get('/v2/events')).status).toBe(429);
    first.close();
    await until(async () => (await listen(scene.url, '/v2/events')).status === 200, 'there is room again');
  });

  it('a store that sends no wake-ups says so', async () => {
    const { listen: _listen, ...mute } = memory();
    const scene = await stage({ store: mute });
    const { status, body } = await scene.get('/v2/inboxes/inbox-0123456789abcdef/events');
    expect([status, body.code]).toEqual([501, 'unsupported']);
  });
});
