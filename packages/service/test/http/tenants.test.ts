/** What one tenant, or a page of another site, may not do to the others. */
import { get as httpGet } from 'node:http';
import { Socket } from 'node:net';
import { memoryStore } from 'holdfast/memory';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuth } from '../../src/auth/index.js';
import { bearer, keyFile } from '../auth/issuer.js';
import { clearScene, listen, pause, stage } from '../scene.js';

afterEach(clearScene);

describe('without auth, a page of another site', () => {
  const lock = '/v1/reports/lock/daily/acquire';
  const body = { instanceId: 'evil', leaseDuration: 60 };

  it.each([
    ['as browsers say it today', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }],
    ['of a sister host', { 'sec-fetch-site': 'same-site' }],
    ['as older browsers say it', { origin: 'http://evil.example' }],
    ['without an origin of its own', { origin: 'null' }],
  ])('gets no lock, %s', async (_name, headers) => {
    const { call } = await stage();
    const answer = await call('POST', lock, JSON.stringify(body), {
      'content-type': 'text/plain',
      ...headers,
    });
    expect(answer.status).toBe(403);
    expect((await call('GET', '/v1/reports/lock/daily')).body.owner).toBeUndefined();
  });

  it('may link to the dashboard, whose own page may do all', async () => {
    const { post, url } = await stage();
    expect(await visit(url)).toBe(200);
    expect((await post(lock, body, { 'sec-fetch-site': 'same-origin' })).status).toBe(200);
    expect((await post(lock, body, { origin: url })).status).toBe(200);
  });

  it('is nobody special where keys are asked for', async () => {
    const { path, keys } = await keyFile({ ann: ['lock:reports'] });
    const { post } = await stage({ auth: createAuth({ apiKeys: path }) });
    const headers = { ...bearer(keys.ann), origin: 'https://app.example' };
    expect((await post(lock, body, headers)).status).toBe(200);
  });
});

/** Follows a link of another site, as a browser does; `fetch` would say that it is no visit. */
function visit(url: string): Promise<number | undefined> {
  const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' };
  return new Promise((resolve, reject) => {
    httpGet(url, { headers, agent: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    }).on('error', reject);
  });
}

describe('a lock of another tenant', () => {
  it.each(['/v2/locks/bob/plan', '/v1/bob/lock/plan', '/v2/locks?key=bob%2Fplan', '/v2/locks?namespace=bob'])(
    'is not even looked at, so neither time nor answer tells that it is there: %s',
    async (path) => {
      const { path: file, keys } = await keyFile({ bob: ['lock:bob'], eve: ['lock:eve'] });
      const memory = memoryStore();
      let looks = 0;
      const store: typeof memory = {
        ...memory,
        read: (key) => {
          looks += 1;
          return memory.read(key);
        },
        list: (query) => {
          looks += 1;
          return memory.list(query);
        },
      };
      const { post, call } = await stage({ store, auth: createAuth({ apiKeys: file }) });
      await post('/v2/locks/bob/plan/acquire', { ttl: '30s' }, bearer(keys.bob));
      const { status, text } = await call('GET', path, undefined, bearer(keys.eve));
      expect(status).toBe(403);
      expect(text).not.toContain('bob');
      expect(looks).toBe(0);
    },
  );
});

describe('the cap on locks held', () => {
  async function capped() {
    const { path, keys } = await keyFile({ eve: ['lock:eve'] });
    const scene = await stage({ auth: createAuth({ apiKeys: path, limits: { held: 2 } }) });
    const as = bearer(keys.eve);
    const acquire = async (name: string) =>
      await scene.post(`/v2/locks/eve/${name}/acquire`, { ttl: '5s' }, as);
    return { ...scene, as, acquire };
  }

  it('counts what is in its cool-down after a release with minHold', async () => {
    const { post, acquire, as } = await capped();
    for (const name of ['a', 'b']) {
      const { hold } = (await acquire(name)).body;
      const released = await post(`/v2/locks/eve/${name}/release`, { hold, minHold: '1h' }, as);
      expect(released.status).toBe(200);
    }
    expect((await acquire('c')).status).toBe(429);
  });

  it('counts what was lengthened by adding, for as long as it lasts then', async () => {
    const { post, acquire, as } = await capped();
    for (const name of ['a', 'b']) {
      const { hold, key, expiresAt } = (await acquire(name)).body;
      const [process, number] = String(hold).split('.');
      const renew = {
        kind: 'renew',
        key,
        hold: { process, number: Number(number) },
        ttlMs: 1,
        block: false,
        added: { ms: 3_600_000, expiresAt },
      };
      const { body } = await post('/v2/batch', { commands: [renew] }, as);
      expect(body.replies).toMatchObject([{ kind: 'renewed' }]);
    }
    await pause(50);
    expect((await acquire('c')).status).toBe(429);
  });
});

it('one principal takes a quarter of all streams and no more', async () => {
  const { path, keys } = await keyFile({ eve: ['read:eve'], ann: ['read:ann'] });
  const { url } = await stage({ auth: createAuth({ apiKeys: path }), limits: { streams: 8 } });
  const streams = [];
  for (let count = 0; count < 3; count += 1) {
    streams.push(await listen(url, '/v2/events?namespace=eve', bearer(keys.eve)));
  }
  expect(streams.map(({ status }) => status)).toEqual([200, 200, 429]);
  const other = await listen(url, '/v2/events?namespace=ann', bearer(keys.ann));
  expect(other.status).toBe(200);
  for (const stream of [...streams, other]) stream.close();
});

it('a batch that finds much taken is answered within bounds', async () => {
  const { post } = await stage();
  const claim = { kind: 'claim', key: 'big/one', permits: 1, capacity: 20, ttlMs: 60_000 };
  const metadata = JSON.stringify({ text: 'x'.repeat(4_000) });
  const asked = (number: number, more: object = {}) => {
    const hold = { process: `somebody-${number}`, number: 1 };
    return { ...claim, hold, owner: 'eve', queue: false, inbox: null, metadata, ...more };
  };
  const take = Array.from({ length: 20 }, (_, number) => asked(number));
  const { body } = await post('/v2/batch', { commands: take });
  expect(body.replies).toMatchObject(take.map(() => ({ kind: 'granted' })));
  const vain = Array.from({ length: 500 }, (_, number) => asked(100 + number, { metadata: null }));
  const { status, text } = await post('/v2/batch', { commands: vain });
  expect(status).toBe(200);
  const { replies } = JSON.parse(text) as {
    replies: { kind: string; holders: { owner: string; metadata: string | null }[] }[];
  };
  expect(new Set(replies.map(({ kind }) => kind))).toEqual(new Set(['busy']));
  expect(replies[0]?.holders[0]).toMatchObject({ owner: 'eve', metadata });
  expect(replies[499]?.holders[0]).toMatchObject({ owner: 'eve', metadata: null });
  expect(text.length).toBeLessThan(4_000_000);
});

it('a foreign namespace is refused or left out without a look at the store', async () => {
  const { path, keys } = await keyFile({ eve: ['read:eve'] });
  const store = memoryStore();
  let looks = 0;
  const counting = {
    ...store,
    list: (query: Parameters<typeof store.list>[0]) => {
      looks += 1;
      return store.list(query);
    },
    read: (key: string) => {
      looks += 1;
      return store.read(key);
    },
  };
  const { call } = await stage({ store: counting, auth: createAuth({ apiKeys: path }) });
  const as = bearer(keys.eve);
  for (const query of ['namespace=ann', 'key=ann/a']) {
    expect((await call('GET', `/v2/locks?${query}`, undefined, as)).status).toBe(403);
  }
  const { body } = await call('GET', '/v2/locks?prefix=ann/', undefined, as);
  expect(body).toMatchObject({ locks: [], next: null });
  expect(looks).toBe(0);
  await call('GET', '/v2/locks?namespace=eve', undefined, as);
  expect(looks).toBeGreaterThan(0);
});

it('a client that has gone before it is looked at is no internal error', async () => {
  const { path, keys } = await keyFile({ eve: ['read:eve'] });
  const { url, lines, get } = await stage({ auth: createAuth({ apiKeys: path }) });
  const { port } = new URL(url);
  const request = `GET /v2/locks?namespace=eve HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${keys.eve}\r\n\r\n`;
  for (let count = 0; count < 100; count += 1) {
    await new Promise<void>((resolve) => {
      const socket = new Socket().on('error', () => undefined).on('close', () => resolve());
      socket.connect(Number(port), '127.0.0.1', () => {
        socket.write(request.repeat(3));
        socket.resetAndDestroy();
      });
    });
  }
  expect((await get('/healthz')).status).toBe(200);
  expect(lines.filter((line) => line.includes('"internal"'))).toEqual([]);
});
