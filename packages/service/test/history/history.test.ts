import { memoryStore } from 'holdfast/memory';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuth } from '../../src/auth/index.js';
import { bearer, keyFile } from '../auth/issuer.js';
import { clearScene, type Grant, listen, open, type Stage, stage, until } from '../scene.js';

afterEach(clearScene);

interface Past {
  readonly key: string;
  readonly owner: string | null;
  readonly token: number | null;
  readonly acquiredAt: number | null;
  readonly endedAt: number;
  readonly waitedMs: number | null;
  readonly heldMs: number | null;
  readonly ended: string;
  readonly by: string | null;
  readonly reason: string | null;
  readonly seen: string;
}

async function holdsOf({ call }: Stage, query = '', headers = {}): Promise<readonly Past[]> {
  const { status, body, text } = await call('GET', `/v2/history${query}`, undefined, headers);
  expect([status, text]).toEqual([200, text]);
  return body.holds as readonly Past[];
}

/** The history once it has this many holds. */
async function grown(scene: Stage, count: number, query = ''): Promise<readonly Past[]> {
  let holds: readonly Past[] = [];
  await until(async () => {
    holds = await holdsOf(scene, query);
    return holds.length >= count;
  }, `${count} holds in the history`);
  return holds;
}

async function ended(scene: Stage, kind: string): Promise<Past> {
  const [hold] = await grown(scene, 1, `?ended=${kind}`);
  if (!hold) throw new Error(`Nothing is ${kind}.`);
  return hold;
}

const release = ({ post }: Stage, { key, hold }: Grant) => post(`/v2/locks/${key}/release`, { hold });

/** Somebody who uses the store without the service. */
function direct(name: string, key: string) {
  const hold = { process: name, number: 1 };
  const plain = { key, hold, owner: name, permits: 1, capacity: 1, queue: false, inbox: null };
  return {
    claim: (ttlMs: number) => ({ kind: 'claim', ...plain, ttlMs, metadata: null }) as const,
    renew: (ttlMs: number) => ({ kind: 'renew', key, hold, ttlMs, block: false }) as const,
    release: { kind: 'release', key, hold, minHoldMs: 0 } as const,
  };
}

const apply = ({ store }: Stage, command: Parameters<Stage['store']['apply']>[0][number]) =>
  Promise.all(store.apply([command]));

/** A stream of events: while it is open, the service reads the store. */
async function watched(scene: Stage): Promise<(event: string, key: string, owner?: string) => Promise<void>> {
  const { events } = await listen(scene.url, '/v2/events');
  await until(() => events.some(({ event }) => event === 'ready'), 'the stream is ready');
  return (event, key, owner = '') =>
    until(
      () =>
        events.some(
          (one) => one.event === event && one.data.key === key && JSON.stringify(one.data).includes(owner),
        ),
      `${event} ${key}`,
    );
}

describe('the history', () => {
  it('has who held what, from when to when, how long it was waited for, and that it was released', async () => {
    const scene = await stage({ name: 'service-1' });
    const first = await scene.acquire('jobs/daily', { owner: 'ada' });
    expect(await holdsOf(scene)).toEqual([]);
    const waiting = open(scene.url, '/v2/locks/jobs/daily/acquire', {
      ttl: '30s',
      wait: '20s',
      owner: 'bob',
    });
    await until(async () => (await scene.get('/v2/locks/jobs/daily')).body.waiting === 1, 'bob waits');
    const sinceMs = performance.now();
    await scene.get('/v2/locks/jobs/daily');
    const waitedMs = performance.now() - sinceMs;
    await release(scene, first);
    const second = (await waiting.answer).body as unknown as Grant;
    await release(scene, second);
    const { body, text } = await scene.get('/v2/history');
    const holds = body.holds as readonly Past[];
    expect(holds).toMatchObject([
      { key: 'jobs/daily', owner: 'bob', token: second.token, ended: 'released', by: null, seen: 'requests' },
      { key: 'jobs/daily', owner: 'ada', token: first.token, ended: 'released', by: null, seen: 'requests' },
    ]);
    const [bob, ada] = holds;
    expect(bob?.acquiredAt).toBeGreaterThanOrEqual(ada?.endedAt ?? Number.NaN);
    expect(bob?.heldMs).toBe((bob?.endedAt ?? 0) - (bob?.acquiredAt ?? 0));
    expect(bob?.waitedMs).toBeGreaterThanOrEqual(Math.floor(waitedMs));
    expect(body.service).toBe('service-1');
    expect(text).not.toContain(first.hold.split('.')[0]);
  });

  it('counts waits, holds and contention, of each key and in histograms', async () => {
    const scene = await stage();
    const held = await scene.acquire('jobs/busy');
    for (let number = 0; number < 3; number += 1) {
      expect((await scene.post('/v2/locks/jobs/busy/acquire', { ttl: '30s' })).status).toBe(423);
    }
    await release(scene, held);
    await release(scene, await scene.acquire('jobs/quiet'));
    const { body } = await scene.get('/v2/history/summary');
    expect(body.counts).toMatchObject({ acquired: 2, refused: 3, contended: 3, released: 2, lost: 0 });
    expect(body.contended).toMatchObject([{ key: 'jobs/busy', contended: 3, acquired: 1 }]);
    const sum = (buckets: unknown): number =>
      (buckets as readonly { readonly count: number }[]).reduce((all, { count }) => all + count, 0);
    expect([sum(body.waits), sum(body.holds)]).toEqual([5, 2]);
  });

  it('says that a hold expired, and that it was lost once its holder finds out', async () => {
    const scene = await stage();
    const { key, hold } = await scene.acquire('jobs/short', { ttl: '1s' });
    expect(await ended(scene, 'expired')).toMatchObject({ key, heldMs: 1_000 });
    expect((await scene.post('/v2/locks/jobs/short/renew', { hold, ttl: '1s' })).status).toBe(409);
    expect(await holdsOf(scene)).toMatchObject([{ key, ended: 'lost', heldMs: 1_000 }]);
    const { body } = await scene.get('/v2/history/summary');
    expect(body.counts).toMatchObject({ expired: 0, lost: 1 });
    expect(body.lost).toMatchObject([{ key, lost: 1 }]);
  });

  it('says who evicted a holder and why, whatever the holder does then', async () => {
    const { path, keys } = await keyFile({ boss: ['admin:*'], ada: ['lock:jobs'] });
    const scene = await stage({ auth: createAuth({ apiKeys: path }) });
    const grant = await scene.call('POST', '/v2/locks/jobs/a/acquire', { ttl: '30s' }, bearer(keys.ada));
    const { hold, token } = grant.body as unknown as Grant;
    const reason = { reason: 'the host is retired' };
    await scene.call('POST', '/v2/locks/jobs/a/evict', reason, bearer(keys.boss));
    const expected = { owner: 'ada', token, ended: 'evicted', by: 'key:boss', ...reason };
    const seen = () => holdsOf(scene, '', bearer(keys.ada));
    expect(await seen()).toMatchObject([expected]);
    await scene.call('POST', '/v2/locks/jobs/a/renew', { hold, ttl: '30s' }, bearer(keys.ada));
    await scene.call('POST', '/v2/locks/jobs/a/release', { hold }, bearer(keys.ada));
    expect(await seen()).toMatchObject([expected]);
  });

  it('of several holders, only the one that was evicted is shown so', async () => {
    const scene = await stage();
    const shared = { permits: 1, capacity: 3 };
    const grants = [];
    for (const owner of ['a', 'b', 'c']) grants.push(await scene.acquire('jobs/pool', { owner, ...shared }));
    const command = { kind: 'evict', key: 'jobs/pool', reason: null };
    const token = grants[1]?.token;
    const { body } = await scene.post('/v2/batch', {
      commands: [{ ...command, fromToken: token, upToToken: token }],
    });
    expect(body.replies).toMatchObject([{ count: 1 }]);
    expect(await holdsOf(scene)).toMatchObject([{ owner: 'b', ended: 'evicted', by: 'anonymous' }]);
  });

  it('is in pages, for one key, for one namespace, and for one way to end', async () => {
    const scene = await stage();
    for (const path of ['a/1', 'a/2', 'b/1', 'a/1']) await release(scene, await scene.acquire(path));
    await scene.acquire('a/3');
    await scene.post('/v2/locks/a/3/evict', {});
    const keys = async (query: string) => (await holdsOf(scene, query)).map(({ key }) => key);
    expect(await keys('')).toEqual(['a/3', 'a/1', 'b/1', 'a/2', 'a/1']);
    expect(await keys('?key=a%2F1')).toEqual(['a/1', 'a/1']);
    expect(await keys('?namespace=b')).toEqual(['b/1']);
    expect(await keys('?ended=evicted')).toEqual(['a/3']);
    const first = await scene.get('/v2/history?limit=2');
    const second = await scene.get(`/v2/history?limit=3&before=${String(first.body.next)}`);
    const pages = [first, second].map(({ body }) => (body.holds as Past[]).map(({ key }) => key));
    expect(pages).toEqual([
      ['a/3', 'a/1'],
      ['b/1', 'a/2', 'a/1'],
    ]);
    expect(second.body.next).toBe(null);
    expect((await scene.get('/v2/history?ended=gone')).status).toBe(400);
  });

  it('shows nobody the keys, the counts or the evictions of namespaces that they may not read', async () => {
    const { path, keys } = await keyFile({ boss: ['admin:*'], ada: ['lock:a'], bob: ['read:b'] });
    const scene = await stage({ auth: createAuth({ apiKeys: path }) });
    await scene.call('POST', '/v2/locks/a/secret/acquire', { ttl: '30s' }, bearer(keys.ada));
    await scene.call('POST', '/v2/locks/a/secret/acquire', { ttl: '30s' }, bearer(keys.ada));
    await scene.call('POST', '/v2/locks/a/secret/evict', {}, bearer(keys.boss));
    const get = (query: string, key: string | undefined) =>
      scene.call('GET', `/v2/history${query}`, undefined, bearer(key ?? ''));
    for (const query of ['?namespace=a', '?key=a%2Fsecret', '?key=a%2Ffree', '/summary?namespace=a']) {
      expect([query, (await get(query, keys.bob)).status]).toEqual([query, 403]);
      expect([query, (await get(query, keys.ada)).status]).toEqual([query, 200]);
    }
    for (const query of ['', '/summary']) {
      expect((await get(query, keys.ada)).text).toContain('a/secret');
      expect((await get(query, keys.bob)).text).not.toContain('secret');
      expect((await scene.get(`/v2/history${query}`)).status).toBe(401);
    }
    const { body } = await get('/summary', keys.bob);
    expect(Object.values(body.counts as object).every((count) => count === 0)).toBe(true);
  });
});

describe('the history of holders that use the store without this service', () => {
  it('has those that were seen while somebody watched, with an expiry or an end without its cause', async () => {
    const scene = await stage();
    const sees = await watched(scene);
    const ada = direct('ada', 'jobs/a');
    await apply(scene, ada.claim(60_000));
    await sees('appeared', 'jobs/a');
    await apply(scene, ada.release);
    await sees('gone', 'jobs/a');
    expect(await ended(scene, 'unknown')).toMatchObject({ owner: 'ada', seen: 'store', waitedMs: null });
    await until(async () => {
      // Again and again: a hold that comes and goes between two looks is not seen.
      await apply(scene, direct(`bob-${performance.now()}`, 'jobs/b').claim(2_000));
      return (await holdsOf(scene, '?ended=expired')).length > 0;
    }, 'an expiry is seen');
    expect(await ended(scene, 'expired')).toMatchObject({ key: 'jobs/b', seen: 'store', heldMs: 2_000 });
  });

  it('says who evicted them through this service', async () => {
    const scene = await stage();
    const sees = await watched(scene);
    await apply(scene, direct('ada', 'jobs/a').claim(60_000));
    await sees('appeared', 'jobs/a');
    await scene.post('/v2/locks/jobs/a/evict', { reason: 'stuck' });
    const expected = { owner: 'ada', ended: 'evicted', by: 'anonymous', reason: 'stuck', seen: 'store' };
    expect(await grown(scene, 1)).toMatchObject([expected]);
  });

  it('is told once, however many watch', async () => {
    const scene = await stage();
    const all = await watched(scene);
    const { events } = await listen(scene.url, '/v2/events?namespace=jobs');
    await until(() => events.some(({ event }) => event === 'ready'), 'the second is ready');
    const ada = direct('ada', 'jobs/a');
    await apply(scene, ada.claim(60_000));
    await all('appeared', 'jobs/a');
    await until(() => events.some(({ event }) => event === 'appeared'), 'the second sees it');
    await apply(scene, ada.release);
    await all('gone', 'jobs/a');
    await until(() => events.some(({ event }) => event === 'gone'), 'the second sees it');
    expect(await holdsOf(scene)).toMatchObject([{ owner: 'ada' }]);
  });
});

describe('the histories of several services on one store', () => {
  it('each say which service it is, and what it saw', async () => {
    const store = memoryStore();
    const one = await stage({ store, name: 'one' });
    const two = await stage({ store, name: 'two' });
    const sees = await watched(one);
    const grant = await one.acquire('jobs/a', { owner: 'ada' });
    await sees('appeared', 'jobs/a');
    await release(two, grant);
    await sees('gone', 'jobs/a');
    expect(await grown(one, 1)).toMatchObject([{ owner: 'ada', ended: 'unknown', seen: 'requests' }]);
    expect(await grown(two, 1)).toMatchObject([{ owner: null, ended: 'released', seen: 'requests' }]);
    for (const [scene, name] of [
      [one, 'one'],
      [two, 'two'],
    ] as const)
      expect((await scene.get('/v2/history/summary')).body.service).toBe(name);
  });

  it('a release of a hold that another granted gets its owner from what was seen in the store', async () => {
    const store = memoryStore();
    const [one, two] = [await stage({ store }), await stage({ store })];
    const sees = await watched(two);
    const grant = await one.acquire('jobs/a', { owner: 'ada' });
    await sees('appeared', 'jobs/a');
    await release(two, grant);
    await sees('gone', 'jobs/a');
    expect(await holdsOf(two)).toMatchObject([
      { owner: 'ada', token: grant.token, ended: 'released', seen: 'requests' },
    ]);
  });

  it('a hold that was renewed elsewhere is no longer taken for expired once that is seen', async () => {
    const store = memoryStore();
    const [one, two] = [await stage({ store }), await stage({ store })];
    const { hold } = await one.acquire('jobs/a', { ttl: '5s' });
    expect((await two.post('/v2/locks/jobs/a/renew', { hold, ttl: '60s' })).status).toBe(200);
    await ended(one, 'expired');
    const sees = await watched(one);
    await sees('appeared', 'jobs/a');
    expect(await holdsOf(one)).toEqual([]);
    expect((await one.get('/v2/history/summary')).body.counts).toMatchObject({ expired: 0 });
    expect((await one.post('/v2/locks/jobs/a/release', { hold })).status).toBe(200);
    expect(await holdsOf(one)).toMatchObject([{ ended: 'released' }]);
  });
});

describe('the size of the history', () => {
  it('is limited: the oldest holds are dropped first', async () => {
    const scene = await stage({ limits: { historyEntries: 3 } });
    for (let number = 1; number <= 5; number += 1) await release(scene, await scene.acquire(`a/${number}`));
    expect((await holdsOf(scene)).map(({ key }) => key)).toEqual(['a/5', 'a/4', 'a/3']);
  });

  it('is limited in time', async () => {
    const scene = await stage({ limits: { historyMs: 500 } });
    await release(scene, await scene.acquire('a/1'));
    await until(async () => (await holdsOf(scene)).length === 0, 'it is forgotten');
    const empty = async (): Promise<boolean> => {
      const { counts } = (await scene.get('/v2/history/summary')).body;
      return Object.values(counts as object).every((count) => count === 0);
    };
    await until(empty, 'its counts are forgotten');
  });

  it('leaves room for others beside a busy key', async () => {
    const scene = await stage();
    await release(scene, await scene.acquire('a/rare'));
    for (let number = 0; number < 110; number += 1) await release(scene, await scene.acquire('a/busy'));
    expect(await holdsOf(scene, '?key=a%2Fbusy&limit=1000')).toHaveLength(100);
    expect(await holdsOf(scene, '?key=a%2Frare')).toHaveLength(1);
    expect((await scene.get('/v2/history/summary')).body.counts).toMatchObject({ released: 111 });
  });

  it('counts the keys beyond a thousand together, and says so', async () => {
    const scene = await stage();
    for (let from = 0; from < 1_100; from += 100) {
      const commands = Array.from({ length: 100 }, (_, index) =>
        direct('ada', `many/${from + index}`).claim(60_000),
      );
      expect((await scene.post('/v2/batch', { commands })).status).toBe(200);
    }
    const { body } = await scene.get('/v2/history/summary');
    expect([body.partial, body.counts]).toMatchObject([true, { acquired: 1_100 }]);
  });
});
