import { afterEach, describe, expect, it } from 'vitest';
import { clearScene, STORES, type Stage, stage } from '../scene.js';

afterEach(clearScene);

for (const [name, newStore] of Object.entries(STORES)) {
  const begin = (): Promise<Stage> => stage({ store: newStore() });

  describe(`/v2 on ${name}`, () => {
    it('acquire grants a free lock, with a hold, a token and how long it is left', async () => {
      const { post } = await begin();
      const { status, body, headers } = await post('/v2/locks/billing/order-1/acquire', {
        ttl: '30s',
        owner: 'ada',
        metadata: { job: 7 },
      });
      expect(status).toBe(200);
      expect(headers.get('cache-control')).toBe('no-store');
      expect(Object.keys(body).sort()).toEqual(
        ['acquiredAt', 'expiresAt', 'hold', 'key', 'now', 'owner', 'remainingMs', 'token'].sort(),
      );
      expect(body).toMatchObject({ key: 'billing/order-1', owner: 'ada' });
      expect(body.hold).toMatch(/^[\w-]{22}\.[1-9]\d{0,15}$/);
      expect(body.expiresAt).toBe((body.acquiredAt as number) + 30_000);
      expect(body.remainingMs).toBeGreaterThan(20_000);
      expect(body.remainingMs).toBeLessThanOrEqual(30_000);
    });

    it('acquire of a taken lock is 423 busy, with who holds it and how soon it may be free', async () => {
      const { acquire, post } = await begin();
      const grant = await acquire('a/b', { owner: 'ada', metadata: { job: 7 } });
      const { status, body, headers } = await post('/v2/locks/a/b/acquire', { ttl: 1_000 });
      expect(status).toBe(423);
      expect(headers.get('content-type')).toMatch(/^application\/problem\+json/);
      expect(body).toMatchObject({
        code: 'busy',
        status: 423,
        key: 'a/b',
        type: 'urn:holdfast:problem:busy',
      });
      const { token, expiresAt } = grant;
      expect(body.holders).toMatchObject([{ owner: 'ada', token, expiresAt, metadata: { job: 7 } }]);
      expect(body.freeInMs).toBeGreaterThan(20_000);
    });

    it('renew extends, never shortens, and says 409 lost once it is over', async () => {
      const { acquire, post, get } = await begin();
      const { hold, expiresAt } = await acquire('a/b', { ttl: '30s' });
      const longer = await post('/v2/locks/a/b/renew', { hold, ttl: '2m' });
      expect(longer.status).toBe(200);
      expect(longer.body.expiresAt).toBeGreaterThan(expiresAt + 60_000);
      const shorter = await post('/v2/locks/a/b/renew', { hold, ttl: '1s' });
      expect(shorter.body.expiresAt).toBe(longer.body.expiresAt);
      await post('/v2/locks/a/b/release', { hold });
      const lost = await post('/v2/locks/a/b/renew', { hold, ttl: '1m' });
      expect([lost.status, lost.body.code]).toEqual([409, 'lost']);
      expect((await get('/v2/locks/a/b')).body.holders).toEqual([]);
    });

    it('release frees the lock, says whether it was held, and may be repeated', async () => {
      const { acquire, post } = await begin();
      const { hold, token } = await acquire('a/b');
      const first = await post('/v2/locks/a/b/release', { hold });
      expect([first.status, first.body]).toMatchObject([200, { released: true, held: true, key: 'a/b' }]);
      expect((await post('/v2/locks/a/b/release', { hold })).body).toMatchObject({
        released: true,
        held: false,
      });
      expect((await acquire('a/b')).token).toBeGreaterThan(token);
    });

    it('a release by somebody else frees nothing', async () => {
      const { acquire, post } = await begin();
      await acquire('a/b');
      const release = await post('/v2/locks/a/b/release', { hold: 'somebody-else.1' });
      expect(release.body).toMatchObject({ released: true, held: false });
      expect((await post('/v2/locks/a/b/acquire', { ttl: 1_000 })).status).toBe(423);
    });

    it('minHold, with the acquire or the release, keeps the lock after an early release', async () => {
      const { acquire, post, get } = await begin();
      const first = await acquire('a/with', { minHold: '20s' });
      await post('/v2/locks/a/with/release', { hold: first.hold });
      expect((await get('/v2/locks/a/with')).body.holders).toMatchObject([
        { resting: true, token: first.token },
      ]);
      expect((await post('/v2/locks/a/with/acquire', { ttl: 1_000 })).status).toBe(423);
      const second = await acquire('a/at');
      await post('/v2/locks/a/at/release', { hold: second.hold, minHold: 20_000 });
      expect((await post('/v2/locks/a/at/acquire', { ttl: 1_000 })).status).toBe(423);
    });

    it('semaphores: as many as there are permits', async () => {
      const { acquire, post } = await begin();
      await acquire('a/pool', { permits: 2, capacity: 3 });
      const { hold } = await acquire('a/pool', { capacity: 3 });
      expect((await post('/v2/locks/a/pool/acquire', { ttl: 1_000, capacity: 3 })).status).toBe(423);
      await post('/v2/locks/a/pool/release', { hold });
      await acquire('a/pool', { capacity: 3 });
    });

    it('read-write locks: readers together, a writer alone', async () => {
      const { acquire, post } = await begin();
      const readers = [await acquire('a/rw', { mode: 'read' }), await acquire('a/rw', { mode: 'read' })];
      expect((await post('/v2/locks/a/rw/acquire', { ttl: 1_000, mode: 'write' })).status).toBe(423);
      for (const { hold } of readers) await post('/v2/locks/a/rw/release', { hold });
      await acquire('a/rw', { mode: 'write' });
      expect((await post('/v2/locks/a/rw/acquire', { ttl: 1_000, mode: 'read' })).status).toBe(423);
      // A plain lock of the same key does not join readers either.
      expect((await post('/v2/locks/a/rw/acquire', { ttl: 1_000 })).status).toBe(423);
    });

    it('inspect shows holders and metadata, and an unused lock as an empty one', async () => {
      const { acquire, get } = await begin();
      const { token, expiresAt } = await acquire('a/b', {
        owner: 'ada',
        metadata: { nested: { deep: [1, null] } },
      });
      const { status, body } = await get('/v2/locks/a/b');
      expect(status).toBe(200);
      const holder = { owner: 'ada', token, expiresAt, permits: 1, capacity: 1, resting: false };
      expect(body).toMatchObject({ key: 'a/b', waiters: [], waiting: 0 });
      expect(body.holders).toMatchObject([{ ...holder, metadata: { nested: { deep: [1, null] } } }]);
      const unused = await get('/v2/locks/a/unused');
      expect(unused.body).toMatchObject({ key: 'a/unused', token: 0, holders: [], waiters: [], waiting: 0 });
    });

    it('list gives what is in use, by namespace and prefix, page by page', async () => {
      const { acquire, get } = await begin();
      for (const path of ['a/x-1', 'a/x-2', 'a/x-3', 'a/y', 'b/x-1']) await acquire(path);
      const keysOf = ({ body }: { body: Record<string, unknown> }): string[] =>
        (body.locks as { key: string }[]).map(({ key }) => key);
      expect(keysOf(await get('/v2/locks'))).toEqual(['a/x-1', 'a/x-2', 'a/x-3', 'a/y', 'b/x-1']);
      expect(keysOf(await get('/v2/locks?namespace=a&prefix=x-'))).toEqual(['a/x-1', 'a/x-2', 'a/x-3']);
      expect(keysOf(await get('/v2/locks?prefix=b%2F'))).toEqual(['b/x-1']);
      expect(keysOf(await get('/v2/locks?key=a%2Fy'))).toEqual(['a/y']);
      expect(keysOf(await get('/v2/locks?key=a%2Fnone'))).toEqual([]);
      const first = await get('/v2/locks?namespace=a&limit=2');
      expect([keysOf(first), first.body.next]).toEqual([['a/x-1', 'a/x-2'], 'a/x-2']);
      const second = await get('/v2/locks?namespace=a&limit=2&after=a%2Fx-2');
      expect([keysOf(second), second.body.next]).toEqual([['a/x-3', 'a/y'], null]);
      // What `next` named may be gone by the time of the next page.
      expect(keysOf(await get('/v2/locks?namespace=a&after=a%2Fx-2b'))).toEqual(['a/x-3', 'a/y']);
    });

    it('evict ends what is held up to a token, and nobody newer', async () => {
      const { acquire, post } = await begin();
      const old = await acquire('a/b');
      expect((await post('/v2/locks/a/b/evict')).body).toMatchObject({ key: 'a/b', evicted: 1 });
      expect((await post('/v2/locks/a/b/renew', { hold: old.hold, ttl: 1_000 })).status).toBe(409);
      const next = await acquire('a/b');
      expect((await post('/v2/locks/a/b/evict', { upToToken: old.token })).body).toMatchObject({
        evicted: 0,
      });
      expect((await post('/v2/locks/a/b/renew', { hold: next.hold, ttl: 1_000 })).status).toBe(200);
      expect((await post('/v2/locks/a/free/evict')).body).toMatchObject({ evicted: 0 });
    });

    it('evict of a token ends one holder; the reason is in the answer to its renewal, and to nobody else', async () => {
      const { acquire, post } = await begin();
      const three = { permits: 1, capacity: 3 };
      const holders = [await acquire('a/b', three), await acquire('a/b', three), await acquire('a/b', three)];
      const [first, second, third] = holders;
      const evict = { token: second?.token, reason: 'the host is retired' };
      expect((await post('/v2/locks/a/b/evict', evict)).body).toMatchObject({ evicted: 1 });
      expect((await post('/v2/locks/a/b/evict', evict)).body).toMatchObject({ evicted: 0 });
      const renewals = holders.map(({ hold }) => post('/v2/locks/a/b/renew', { hold, ttl: 30_000 }));
      const [one, lost, other] = await Promise.all(renewals);
      expect([one?.status, other?.status]).toEqual([200, 200]);
      expect(lost).toMatchObject({ status: 409, body: { code: 'lost', evicted: { reason: evict.reason } } });
      expect(lost?.body.detail).toBe(
        'An operator evicted the holder of this lock ("the host is retired"): stop the work that it protects.',
      );
      expect((await post('/v2/locks/a/b/evict', { upToToken: third?.token })).body.evicted).toBe(2);
      const silent = await post('/v2/locks/a/b/renew', { hold: first?.hold, ttl: 30_000 });
      expect(silent.body).toMatchObject({ code: 'lost', evicted: { reason: null } });
    });

    it.each([
      { token: 1, upToToken: 1 },
      { token: -1 },
      { token: 'x' },
      { reason: '' },
      { reason: 7 },
      { reason: 'two\nlines' },
      { reason: 'ä'.repeat(129) },
    ])('evict of %j is refused with 400', async (body) => {
      const { acquire, post } = await begin();
      const { hold } = await acquire('a/b');
      expect(await post('/v2/locks/a/b/evict', body)).toMatchObject({
        status: 400,
        body: { code: 'invalid-argument' },
      });
      expect((await post('/v2/locks/a/b/renew', { hold, ttl: 1_000 })).status).toBe(200);
    });

    it('batch answers every command alone, those of one key in order', async () => {
      const { post } = await begin();
      const hold = { process: 'p', number: 1 };
      const claim = { kind: 'claim', key: 'a/b', hold, owner: 'o', permits: 1, capacity: 1, ttlMs: 30_000 };
      const { status, body } = await post('/v2/batch', {
        commands: [
          { ...claim, queue: false, inbox: null, metadata: '{"a":1}' },
          { kind: 'renew', key: 'a/b', hold, ttlMs: 60_000, block: true },
          { ...claim, hold: { process: 'q', number: 1 }, queue: false, inbox: null, metadata: null },
          { kind: 'release', key: 'a\u0000b', hold, minHoldMs: 0 },
          { kind: 'release', key: 'a/b', hold, minHoldMs: 0 },
          { kind: 'evict', key: 'a/b', upToToken: 0 },
        ],
      });
      expect(status).toBe(200);
      const replies = body.replies as { kind?: string; problem?: { code: string } }[];
      expect(replies.map((reply) => reply.kind ?? reply.problem?.code)).toEqual([
        'granted',
        'renewed',
        'busy',
        'invalid-argument',
        'released',
        'evicted',
      ]);
      expect(replies[1]).toMatchObject({
        block: { token: expect.any(Number), tokenLast: expect.any(Number) },
      });
      expect((await post('/v2/batch', { commands: [] })).body).toEqual({ replies: [] });
      for (const odd of ['\u0000', 'a\nb', '\ud800']) {
        const renew = { kind: 'renew', key: 'a/b', ttlMs: 1_000, block: false };
        const command = { ...renew, hold: { process: odd, number: 1 } };
        expect((await post('/v2/batch', { commands: [command] })).body.code).toBe('invalid-argument');
      }
    });

    it('probe says what the store promises', async () => {
      const { get, store } = await begin();
      const { status, body } = await get('/v2/probe');
      expect(status).toBe(200);
      expect(body).toMatchObject({
        store: store.name,
        traits: { ...store.traits },
        server: expect.any(String),
      });
      expect((body.findings as unknown[]).length).toBeGreaterThan(0);
    });

    it('names may be anything the library allows, percent-encoded', async () => {
      const { acquire, get, post } = await begin();
      for (const name of [
        'a/b',
        'ä',
        '😀',
        'x y',
        '%',
        'a%20b',
        '*',
        '?&=#',
        'x'.repeat(512),
        '__proto__',
        '. .',
      ]) {
        const path = `names/${encodeURIComponent(name)}`;
        const { key, hold } = await acquire(path);
        expect(key).toBe(`names/${name}`);
        expect((await get(`/v2/locks/${path}`)).body.holders).toHaveLength(1);
        expect(
          (await get(`/v2/locks?namespace=names&prefix=${encodeURIComponent(name)}`)).body.locks,
        ).toHaveLength(1);
        expect((await post(`/v2/locks/${path}/release`, { hold })).body.held).toBe(true);
      }
    });

    it('two spellings of one letter are one lock', async () => {
      const { acquire, post } = await begin();
      await acquire(`a/${encodeURIComponent('caf\u00e9')}`);
      const other = await post(`/v2/locks/a/${encodeURIComponent('cafe\u0301')}/acquire`, { ttl: 1_000 });
      expect([other.status, other.body.key]).toEqual([423, 'a/caf\u00e9']);
    });
  });
}
