import { request as httpRequest } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { type Authenticator, createService, Problem, type Role } from '../../src/index.js';
import { clearScene, listen, open, STORES, type Stage, stage, until } from '../scene.js';

afterEach(clearScene);

/** `x-as: ada read:a lock:a` is ada, who may read and lock in namespace a. */
const auth: Authenticator = {
  authenticate(request) {
    const said = request.headers['x-as'];
    if (typeof said !== 'string') {
      throw new Problem('unauthorized', 'Say who you are.', { headers: { 'www-authenticate': 'Bearer' } });
    }
    const [id = '', ...rights] = said.split(' ');
    return {
      id,
      owner: id,
      may: (role: Role, namespace: string) => rights.includes(`${role}:${namespace}`),
      prefixes: (role: Role) =>
        rights
          .filter((right) => right.startsWith(`${role}:`))
          .map((right) => `${right.slice(role.length + 1)}/`),
    };
  },
};

/** What a list is answered with that is addressed to this host. */
function statusFor(url: string, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(`${url}/v2/locks`, { headers: { host } }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    request.on('error', reject);
    request.end();
  });
}

const evictAll = { kind: 'evict', key: 'a/b', upToToken: Number.MAX_SAFE_INTEGER } as const;

const ADA = { 'x-as': 'ada read:a lock:a admin:a' };
const BERT = { 'x-as': 'bert read:b lock:b' };

describe('who may do what', () => {
  const begin = (): Promise<Stage> => stage({ auth });

  it('without auth it listens on loopback only, unless told', async () => {
    const store = STORES.memory?.();
    if (!store) throw new Error('There is no memory store.');
    const closed = createService({ store });
    await expect(closed.listen({ host: '0.0.0.0' })).rejects.toThrow(/loopback/);
    await closed.close();
    const insecure = createService({ store, insecure: true });
    expect(await insecure.listen({ host: '0.0.0.0' })).toMatch(/^http:/);
    await insecure.close();
  });

  for (const insecure of [false, true]) {
    it(`without auth it does not answer to names that a web page could have made up, insecure: ${insecure}`, async () => {
      const { url } = await stage({ insecure });
      for (const host of ['localhost', 'LOCALHOST:1', '127.0.0.1:80', '[::1]:80', '10.0.0.7', '[fd00::1]:80'])
        expect([host, await statusFor(url, host)]).toEqual([host, 200]);
      for (const host of ['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example:80', 'locks']) {
        expect([host, await statusFor(url, host)]).toEqual([host, 403]);
      }
    });
  }

  it('without auth it answers to the host names that are allowed, and with * to every name', async () => {
    const { url } = await stage({ insecure: true, allowedHosts: ['Locks.Example'] });
    const named = ['locks.example:8080', 'localhost', 'evil.example', 'evil.locks.example'];
    const found = [];
    for (const host of named) found.push(await statusFor(url, host));
    expect(found).toEqual([200, 200, 403, 403]);
    const open = await stage({ allowedHosts: ['*'] });
    expect(await statusFor(open.url, 'evil.example')).toBe(200);
  });

  it('whoever does not say who they are gets 401, before the body is looked at', async () => {
    const { call } = await begin();
    const { status, body, headers } = await call('POST', '/v2/locks/a/b/acquire', 'no json');
    expect([status, body.code, headers.get('www-authenticate')]).toEqual([401, 'unauthorized', 'Bearer']);
    for (const path of [
      '/v2/locks',
      '/v2/locks/a/b',
      '/v2/events',
      '/v2/probe',
      '/v2/history',
      '/v2/history/summary',
      '/v2/inboxes/0123456789abcdef/events',
    ]) {
      expect((await call('GET', path)).status).toBe(401);
    }
  });

  it('the description of the API is for everybody', async () => {
    const { get } = await begin();
    expect((await get('/v2/openapi.json')).status).toBe(200);
    expect((await get('/v2/docs')).status).toBe(200);
  });

  it('changes in a foreign namespace are 403, and change nothing', async () => {
    const { call, store } = await begin();
    const grant = await call('POST', '/v2/locks/a/x/acquire', { ttl: '30s' }, ADA);
    const { hold } = grant.body;
    const bodies = { acquire: { ttl: '1s' }, renew: { hold, ttl: '1s' }, release: { hold }, evict: {} };
    for (const [verb, body] of Object.entries(bodies)) {
      const { status, body: problem } = await call('POST', `/v2/locks/a/x/${verb}`, body, BERT);
      expect([verb, status, problem.code]).toEqual([verb, 403, 'forbidden']);
    }
    expect((await store.read('a/x'))?.holders).toMatchObject([{ owner: 'ada' }]);
  });

  it('evict needs admin', async () => {
    const { call } = await begin();
    expect((await call('POST', '/v2/locks/b/x/evict', {}, BERT)).status).toBe(403);
    expect((await call('POST', '/v2/locks/a/x/evict', {}, ADA)).status).toBe(200);
  });

  it('a lock of a foreign namespace is 403, held or free, and lists do not have it', async () => {
    const { call } = await begin();
    await call('POST', '/v2/locks/a/x/acquire', { ttl: '30s' }, ADA);
    for (const path of ['/a/x', '/a/free', '?namespace=a', '?key=a%2Fx', '?key=a%2Ffree']) {
      const { status, body } = await call('GET', `/v2/locks${path}`, undefined, BERT);
      expect([path, status, body.code]).toEqual([path, 403, 'forbidden']);
    }
    for (const query of ['', '?prefix=a']) {
      const { status, body } = await call('GET', `/v2/locks${query}`, undefined, BERT);
      expect([status, body]).toEqual([200, { locks: [], next: null }]);
    }
    expect((await call('GET', '/v2/locks', undefined, ADA)).body.locks).toHaveLength(1);
  });

  it('a page of a list does not say that foreign locks follow', async () => {
    const { call } = await begin();
    for (const path of ['a/1', 'a/2']) await call('POST', `/v2/locks/${path}/acquire`, { ttl: '30s' }, ADA);
    await call('POST', '/v2/locks/b/1/acquire', { ttl: '30s' }, BERT);
    const { body } = await call('GET', '/v2/locks?limit=1', undefined, BERT);
    expect([(body.locks as { key: string }[]).map(({ key }) => key), body.next]).toEqual([['b/1'], null]);
  });

  it('a batch is checked key by key', async () => {
    const { call } = await begin();
    const command = { kind: 'release', hold: { process: 'p', number: 1 }, minHoldMs: 0 };
    const commands = [
      { ...command, key: 'b/1' },
      { ...command, key: 'a/1' },
      { ...command, key: 'bare' },
    ];
    const { body } = await call(
      'POST',
      '/v2/batch',
      { commands: [...commands, { kind: 'evict', key: 'b/1', upToToken: 1 }] },
      BERT,
    );
    const replies = body.replies as { kind?: string; problem?: { code: string } }[];
    expect(replies.map((reply) => reply.kind ?? reply.problem?.code)).toEqual([
      'released',
      'forbidden',
      'forbidden',
      'forbidden',
    ]);
  });

  it('events show only what may be read', async () => {
    const scene = await begin();
    const asBert = await listen(scene.url, '/v2/events', BERT);
    await until(() => asBert.events.some(({ event }) => event === 'ready'), 'it is ready');
    await scene.call('POST', '/v2/locks/a/x/acquire', { ttl: '30s' }, ADA);
    await scene.call('POST', '/v2/locks/b/x/acquire', { ttl: '30s' }, BERT);
    await until(() => asBert.events.some(({ event }) => event === 'appeared'), 'a lock appears');
    expect(asBert.text()).not.toContain('a/x');
  });

  it('a route that does not say what it needs is for nobody', async () => {
    const forgetful = {
      name: 'forgetful',
      register: (app: { get: (path: string, run: () => string) => unknown }) =>
        void app.get('/open', () => 'hello'),
    };
    const { call } = await stage({ auth, parts: [forgetful as never] });
    expect((await call('GET', '/open', undefined, ADA)).status).toBe(403);
    const without = await stage({ parts: [forgetful as never] });
    expect((await without.get('/open')).status).toBe(403);
  });

  it('a right that is taken away while somebody waits: 403, and the lock is given back', async () => {
    let mayLock = true;
    const fickle: Authenticator = {
      authenticate: () => ({
        id: 'ada',
        owner: 'ada',
        may: (role) => role !== 'lock' || mayLock,
        prefixes: () => [''],
      }),
    };
    const { url, acquire, post, get, store } = await stage({ auth: fickle });
    const { hold } = await acquire('a/b');
    const waiter = open(url, '/v2/locks/a/b/acquire', { ttl: '30s', wait: '20s' });
    await until(async () => (await get('/v2/locks/a/b')).body.waiting === 1, 'it waits');
    const release = post('/v2/locks/a/b/release', { hold });
    mayLock = false;
    // The release was let in, or not: then the lock is freed by hand.
    if ((await release).status !== 200) await Promise.all(store.apply([evictAll]));
    const { status, body } = await waiter.answer;
    expect([status, body.code]).toEqual([403, 'forbidden']);
    await until(async () => (await store.read('a/b')) === null, 'it is given back');
  });

  it('what a principal holds is told to it, and no longer than it may', async () => {
    const told: [string, number][] = [];
    const counting: Authenticator = {
      authenticate: () => ({
        id: 'ada',
        owner: 'ada',
        may: () => true,
        prefixes: () => [''],
        checkTtl: (_key, ttlMs) => {
          if (ttlMs > 60_000) throw new Problem('forbidden', 'No longer than a minute.');
        },
        holds: (_key, hold, ttlMs) => void told.push([hold, ttlMs]),
      }),
    };
    const { acquire, post } = await stage({ auth: counting });
    const { hold } = await acquire('a/b', { ttl: '30s' });
    await post('/v2/locks/a/b/renew', { hold, ttl: '40s' });
    expect((await post('/v2/locks/a/b/renew', { hold, ttl: '2m' })).status).toBe(403);
    expect((await post('/v2/locks/a/b/release', { hold, minHold: '2m' })).status).toBe(403);
    expect((await post('/v2/locks/a/c/acquire', { ttl: '1s', minHold: '2m' })).status).toBe(403);
    const command = { key: 'a/b', hold: { process: 'p', number: 1 } };
    const { body } = await post('/v2/batch', {
      commands: [
        { ...command, kind: 'release', minHoldMs: 120_000 },
        { ...command, kind: 'renew', ttlMs: 1, block: false, added: { ms: 120_000, expiresAt: 0 } },
      ],
    });
    expect(body.replies).toMatchObject([
      { problem: { code: 'forbidden' } },
      { problem: { code: 'forbidden' } },
    ]);
    await post('/v2/locks/a/b/release', { hold });
    expect(told).toEqual([
      [hold, 30_000],
      [hold, 40_000],
      [hold, 0],
    ]);
  });

  it('evictions are told with who did it', async () => {
    const { service, acquire, post } = await stage();
    const told: unknown[] = [];
    service.events.on('evicted', (what) => told.push(what));
    await acquire('a/b');
    const one = await post('/v2/locks/a/b/evict', {}, { 'x-request-id': 'evict-1' });
    const commands = [{ kind: 'evict', key: 'a/b', upToToken: 1 }];
    const two = await post('/v2/batch', { commands }, { 'x-request-id': 'evict-2' });
    const by = { key: 'a/b', principal: 'anonymous', fromToken: 0, reason: null };
    expect(told).toEqual([
      { ...by, count: 1, upToToken: expect.any(Number), requestId: one.headers.get('x-request-id') },
      { ...by, count: 0, upToToken: 1, requestId: two.headers.get('x-request-id') },
    ]);
  });

  it('a principal may have less than it asks for', async () => {
    let under = 0;
    const bounded: Authenticator = {
      authenticate: () => ({
        id: 'ada',
        owner: 'ada',
        may: () => true,
        prefixes: () => [''],
        checkTtl: (_key, ttlMs) => {
          if (ttlMs > 10_000) throw new Problem('forbidden', 'No longer than 10 s.');
        },
        undertake: async () => {
          under += 1;
          return () => {
            under -= 1;
          };
        },
      }),
    };
    const { post } = await stage({ auth: bounded });
    expect((await post('/v2/locks/a/b/acquire', { ttl: '20s' })).status).toBe(403);
    expect((await post('/v2/locks/a/b/acquire', { ttl: '5s' })).status).toBe(200);
    expect((await post('/v2/locks/a/b/acquire', { ttl: '5s' })).status).toBe(423);
    expect(under).toBe(0);
  });
});
