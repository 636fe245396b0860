import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { clearScene, pause, type Stage, stage } from '../scene.js';

afterEach(clearScene);

const ACQUIRE = '/v2/locks/a/b/acquire';

/** Says it as it is, and gives all that comes back until the connection ends. */
function raw({ url }: Stage, text: string, thenMs = 0): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    let heard = '';
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true }, () =>
      socket.write(text),
    );
    socket.on('data', (chunk) => {
      heard += String(chunk);
    });
    socket.on('close', () => resolve(heard));
    socket.on('error', () => resolve(heard));
    socket.on('end', () => socket.end());
    if (thenMs > 0) setTimeout(() => socket.end(), thenMs);
  });
}

describe('problems', () => {
  it('are problem+json, with a code, words, and the id of the request', async () => {
    const { post } = await stage();
    const { status, headers, body } = await post(
      ACQUIRE,
      { ttl: '30s', typo: 1 },
      { 'x-request-id': 'mine-1' },
    );
    expect(status).toBe(400);
    expect(headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
    // Never the client's own: it could be another client's, too.
    const requestId = headers.get('x-request-id');
    expect(requestId).toMatch(/^[0-9a-f-]{36}$/);
    expect(body).toEqual({
      type: 'urn:holdfast:problem:invalid-argument',
      title: 'The request is not valid',
      status: 400,
      detail: 'The body has a member that is not known here: "typo".',
      code: 'invalid-argument',
      requestId,
    });
  });

  it.each([
    [{}, 'The body must have the member "ttl".'],
    [[], 'The body must be of type object.'],
    [{ ttl: '30s', queue: 'no' }, 'body.queue must be of type boolean.'],
  ])('says what the body %j lacks', async (sent, detail) => {
    const { post } = await stage();
    const { status, body } = await post(ACQUIRE, sent);
    expect([status, body.detail]).toEqual([400, detail]);
  });

  const wrong: Readonly<Record<string, unknown>> = {
    'no ttl': {},
    'ttl too short': { ttl: 1 },
    'ttl too long': { ttl: '200h' },
    'ttl of the wrong kind': { ttl: true },
    'ttl as text of a number': { ttl: '30' },
    'ttl null': { ttl: null },
    'wait too long': { ttl: '1s', wait: '1h' },
    'negative wait': { ttl: '1s', wait: -1 },
    'owner empty': { ttl: '1s', owner: '' },
    'owner with control characters': { ttl: '1s', owner: 'a\nb' },
    'owner too long': { ttl: '1s', owner: 'é'.repeat(200) },
    'metadata a list': { ttl: '1s', metadata: [] },
    'metadata too large': { ttl: '1s', metadata: { a: 'x'.repeat(5_000) } },
    'more permits than capacity': { ttl: '1s', permits: 2 },
    'permits 0': { ttl: '1s', permits: 0, capacity: 2 },
    'permits with a mode': { ttl: '1s', mode: 'read', permits: 1 },
    'unknown mode': { ttl: '1s', mode: 'shared' },
    'hold without a number': { ttl: '1s', hold: 'abc' },
    'hold with a number too large': { ttl: '1s', hold: 'abc.9999999999999999' },
    'hold too long': { ttl: '1s', hold: `${'a'.repeat(99)}.1` },
    'hold and minHold': { ttl: '1s', hold: 'abc.1', minHold: '1s' },
    'a list': [],
    'a text': '"x"',
    'a number': '1',
    null: 'null',
    nothing: '',
    'no JSON': '{',
    'two documents': '{} {}',
    __proto__poisoning: '{"ttl":1000,"__proto__":{"x":1}}',
    'constructor poisoning': '{"ttl":1000,"constructor":{"prototype":{"x":1}}}',
    'not UTF-8 enough': '{"ttl":"1s","owner":"\\ud800"}',
  };
  it('whatever is wrong with a body is 400 invalid-argument', async () => {
    const { post, store } = await stage();
    for (const [what, body] of Object.entries(wrong)) {
      const answer = await post(ACQUIRE, body);
      expect([what, answer.status, answer.body.code]).toEqual([what, 400, 'invalid-argument']);
    }
    expect(await store.read('a/b')).toBeNull();
  });

  it('owners and metadata that the library would refuse are refused in a batch, and nothing is stored', async () => {
    const { post, get, store } = await stage();
    const claim = { kind: 'claim', key: 'a/b', hold: { process: 'p', number: 1 }, owner: 'o', permits: 1 };
    const full = { ...claim, capacity: 1, ttlMs: 9_000, queue: false, inbox: null, metadata: null };
    const codeOf = async (more: object): Promise<unknown> => {
      const { body } = await post('/v2/batch', { commands: [{ ...full, ...more }] });
      const [reply] = (body.replies ?? []) as { problem?: { code: string } }[];
      return body.code ?? reply?.problem?.code;
    };
    for (const metadata of [
      'not json {',
      '',
      'null',
      '7',
      '"text"',
      '[1]',
      JSON.stringify({ a: 'é'.repeat(2_100) }),
    ])
      expect([metadata, await codeOf({ metadata })]).toEqual([metadata, 'invalid-argument']);
    for (const owner of ['', 'é'.repeat(200)])
      expect([owner, await codeOf({ owner })]).toEqual([owner, 'invalid-argument']);
    expect(await store.read('a/b')).toBeNull();
    expect(await codeOf({ metadata: '{"a":{"b":[1]}}' })).toBeUndefined();
    expect((await get('/v2/locks/a/b')).body.holders).toMatchObject([{ metadata: { a: { b: [1] } } }]);
  });

  it('names that the library would refuse are 400', async () => {
    const { post } = await stage();
    for (const path of [
      'a%20b/c',
      'ä/c',
      `${'a'.repeat(65)}/c`,
      'a/%00',
      'a/%0a',
      `a/${'%C3%A9'.repeat(257)}`,
      'a/%ff',
    ]) {
      const { status, body } = await post(`/v2/locks/${path}/acquire`, { ttl: '1s' });
      expect([path, status, body.code]).toEqual([path, 400, 'invalid-argument']);
    }
    const long = await post(`/v2/locks/a/${'x'.repeat(4_000)}/acquire`, { ttl: '1s' });
    expect([long.status, long.body.code]).toEqual([400, 'invalid-argument']);
    expect(long.headers.get('content-type')).toMatch(/^application\/problem\+json/);
  });

  it('wrong queries are 400', async () => {
    const { get } = await stage();
    for (const query of [
      'limit=0',
      'limit=x',
      'limit=1&limit=2',
      'nonsense=1',
      'namespace=a%20b',
      'key=%00',
      'key=a/%E9',
      'namespace=a&prefix=100%',
      'metadata=xml',
    ]) {
      const { status, body } = await get(`/v2/locks?${query}`);
      expect([query, status, body.code]).toEqual([query, 400, 'invalid-argument']);
    }
  });

  it('a path that is not there is 404, a method that does not work there 405 with Allow', async () => {
    const { call, get } = await stage();
    const nowhere = await get('/v2/nowhere');
    expect([nowhere.status, nowhere.body.code]).toEqual([404, 'not-found']);
    const wrongMethod = await call('DELETE', '/v2/locks/a/b');
    expect([wrongMethod.status, wrongMethod.body.code]).toEqual([405, 'method-not-allowed']);
    expect(wrongMethod.headers.get('allow')).toBe('GET, HEAD');
    expect((await get(ACQUIRE)).headers.get('allow')).toBe('POST');
    // Not a 405 that allows what was sent.
    for (const path of ['/v2/locks/', '/v2/locks/a/b/', '/metrics/'])
      expect((await get(path)).status).toBe(404);
  });

  it('bodies that are not JSON by their own word are 415', async () => {
    const { post } = await stage();
    for (const type of ['text/plain', 'application/xml', 'application/x-www-form-urlencoded']) {
      const { status, body } = await post(ACQUIRE, 'ttl=1', { 'content-type': type });
      expect([type, status, body.code]).toEqual([type, 415, 'unsupported-media-type']);
    }
  });

  it('oversized bodies are 413, and the service goes on', async () => {
    const { post, acquire } = await stage();
    const big = await post(ACQUIRE, { ttl: '1s', metadata: { a: 'x'.repeat(100_000) } });
    expect([big.status, big.body.code]).toEqual([413, 'too-large']);
    const batch = await post('/v2/batch', { commands: [], more: 'x'.repeat(2_000_000) });
    expect([batch.status, batch.body.code]).toEqual([413, 'too-large']);
    await acquire('a/b');
  });

  it('more commands than a batch may have are 400', async () => {
    const { post } = await stage({ limits: { batchCommands: 2 } });
    const command = { kind: 'evict', key: 'a/b', upToToken: 0 };
    expect((await post('/v2/batch', { commands: [command, command] })).status).toBe(200);
    expect((await post('/v2/batch', { commands: [command, command, command] })).status).toBe(400);
  });

  it('deeply nested bodies are 400, and the service goes on', async () => {
    const { post, acquire } = await stage({ limits: { bodyBytes: 1_000_000 } });
    const deep = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
    for (const levels of [33, 1_000, 20_000, 100_000]) {
      const nested = await post(ACQUIRE, `{"ttl":1000,"metadata":${deep(levels)}}`);
      expect([levels, nested.status, nested.body.code]).toEqual([levels, 400, 'invalid-argument']);
      const lists = `{"ttl":1000,"metadata":{"a":${'['.repeat(levels)}${']'.repeat(levels)}}}`;
      expect((await post(ACQUIRE, lists)).status).toBe(400);
      expect(
        (await post('/v2/batch', `{"commands":${'['.repeat(levels)}${']'.repeat(levels)}}`)).status,
      ).toBe(400);
    }
    await acquire('a/b', { metadata: JSON.parse(deep(30)) as object });
  });

  it('what is no HTTP is answered 400 and cut off', async () => {
    const scene = await stage();
    const heard = await raw(scene, 'NONSENSE\r\n\r\n');
    expect(heard).toMatch(/^HTTP\/1\.1 400 /);
    expect(heard).toContain('"code":"invalid-argument"');
    const large = await raw(scene, `GET / HTTP/1.1\r\nhost: localhost\r\nx: ${'y'.repeat(40_000)}\r\n\r\n`);
    expect(large).toContain('"code":"too-large"');
    await scene.acquire('a/b');
  });

  it('a request that arrives too slowly is 408 and cut off, headers or body', async () => {
    const scene = await stage({ limits: { headersMs: 300, requestMs: 600 } });
    const headers = await raw(scene, 'GET /v2/locks HTTP/1.1\r\nhost: localhost\r\n');
    expect(headers).toMatch(/^HTTP\/1\.1 408 /);
    expect(headers).toContain('"code":"timeout"');
    const begun = `POST ${ACQUIRE} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"ttl"`;
    const body = await raw(scene, begun);
    expect(body).toMatch(/^HTTP\/1\.1 408 /);
    await scene.acquire('a/b');
  });

  it('a body that ends early is no acquire', async () => {
    const scene = await stage();
    const begun = `POST ${ACQUIRE} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"ttl":1000}`;
    await raw(scene, begun, 100);
    await pause(50);
    expect(await scene.store.read('a/b')).toBeNull();
  });

  it('what nobody foresaw is 500 and shows nothing of its inside; the log has it', async () => {
    const { get, lines } = await stage({
      parts: [
        {
          name: 'broken',
          register(app) {
            app.get('/broken', { config: { needs: 'public' } }, () => {
              throw new TypeError('inner secret');
            });
          },
        },
      ],
    });
    const { status, body, text } = await get('/broken');
    expect([status, body.code]).toEqual([500, 'internal']);
    expect(text).not.toContain('inner secret');
    expect(lines.join('')).toContain('inner secret');
  });
});
