/** What operators and load balancers rely on: addresses in the log, HEAD, Retry-After, draining, an end in time. */
import { memoryStore } from 'holdfast/memory';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuth } from '../../src/auth/index.js';
import { bearer, keyFile } from '../auth/issuer.js';
import { type Body, clearScene, type Stage, stage, until } from '../scene.js';

afterEach(clearScene);

const ACQUIRE = '/v2/locks/a/b/acquire';

/** The last line of a request that has this outcome. */
async function lineOf({ lines }: Stage, outcome: string): Promise<Body | undefined> {
  const find = (): Body | undefined =>
    lines.map((line) => JSON.parse(line) as Body).findLast((line) => line.outcome === outcome);
  await until(() => find() !== undefined, `there is a line with the outcome ${outcome}`);
  return find();
}

describe('the log', () => {
  it('has the address that a request came from, behind a trusted proxy that of the client', async () => {
    const direct = await stage();
    await direct.get('/healthz');
    expect((await lineOf(direct, 'ok'))?.address).toBe('127.0.0.1');
    const proxied = await stage({ trustProxy: ['127.0.0.1'] });
    await proxied.call('GET', '/healthz', undefined, { 'x-forwarded-for': '203.0.113.9' });
    expect((await lineOf(proxied, 'ok'))?.address).toBe('203.0.113.9');
  });

  it('names the address and the id of a key that is refused, and never its secret', async () => {
    const { path, keys } = await keyFile({ ada: ['admin:a'] });
    const scene = await stage({ auth: createAuth({ apiKeys: path }) });
    const wrong = `${keys.ada?.slice(0, -4)}0000`;
    const id = wrong.split('_')[1];
    const answer = await scene.call('GET', '/v2/locks/a/b', undefined, bearer(wrong));
    expect(answer.status).toBe(401);
    expect(await lineOf(scene, 'unauthorized')).toMatchObject({
      address: '127.0.0.1',
      keyId: id,
      status: 401,
    });
    await scene.call('GET', '/v2/locks/a/b', undefined, bearer(keys.ada));
    expect(await lineOf(scene, 'ok')).toMatchObject({ principal: 'key:ada', keyId: id });
    expect(scene.lines.join('')).not.toContain(wrong.slice(17));
    expect(answer.text).not.toContain(id);
  });
});

describe('HEAD', () => {
  it('answers as GET does, without a body, wherever GET answers with one', async () => {
    const scene = await stage();
    for (const path of [
      '/',
      '/healthz',
      '/readyz',
      '/metrics',
      '/v2/locks',
      '/v2/locks/a/b',
      '/v2/openapi.json',
    ]) {
      const [got, headed] = await Promise.all(
        ['GET', 'HEAD'].map((method) => fetch(scene.url + path, { method })),
      );
      const type = (response?: Response) => response?.headers.get('content-type');
      expect([path, headed?.status, type(headed)]).toEqual([path, got?.status, type(got)]);
      expect([path, await headed?.text()]).toEqual([path, '']);
      await got?.text();
    }
  });

  it('opens no stream', async () => {
    const scene = await stage();
    const { status } = await fetch(`${scene.url}/v2/events`, { method: 'HEAD' });
    expect(status).toBe(405);
  });
});

describe('a store that does not answer', () => {
  it('is 503 unknown with Retry-After, and so is /readyz', async () => {
    const memory = memoryStore();
    const away = () => Promise.reject(new Error('away'));
    const { get } = await stage({ store: { ...memory, read: away } });
    const { status, body, headers } = await get('/v2/locks/a/b');
    expect([status, body.code, headers.get('retry-after')]).toEqual([503, 'unknown', '1']);
    const ready = await get('/readyz');
    expect([ready.status, ready.headers.get('retry-after')]).toEqual([503, '1']);
  });
});

describe('/readyz', () => {
  it('asks the store once for many who ask at once, and not at all while others are answered', async () => {
    const memory = memoryStore();
    let reads = 0;
    const store = {
      ...memory,
      // An answer of a store that charges for reads counts for 10 s: long enough for a busy machine.
      traits: { ...memory.traits, metered: true },
      read: (key: string) => {
        reads += 1;
        return memory.read(key);
      },
    };
    const { get, acquire } = await stage({ store });
    const answers = await Promise.all(Array.from({ length: 20 }, () => get('/readyz')));
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(reads).toBe(1);
    await acquire('a/b');
    expect([(await get('/readyz')).status, reads]).toEqual([200, 1]);
  });
});

describe('draining', () => {
  it('/readyz is 503 first, while everything else still works; then it closes', async () => {
    const { get, post, service, acquire, url } = await stage({ drainMs: 4_000 });
    const { hold } = await acquire('a/b');
    const closed = service.close();
    const ready = await get('/readyz');
    expect([ready.status, ready.body]).toEqual([503, { status: 'draining' }]);
    const others = await Promise.all([
      get('/healthz'),
      post('/v2/locks/a/b/renew', { hold, ttl: '30s' }),
      post('/v2/locks/a/c/acquire', { ttl: '30s' }),
    ]);
    expect(others.map(({ status }) => status)).toEqual([200, 200, 200]);
    await closed;
    await expect(fetch(`${url}/healthz`)).rejects.toThrow();
  });
});

describe('closing with a store that hangs', () => {
  it('takes closeMs in all, not for each thing that is waited for', async () => {
    const memory = memoryStore();
    const never = (): Promise<never> => new Promise(() => undefined);
    let hangs = false;
    let arrived = (): void => undefined;
    const isAsked = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const store: typeof memory = {
      ...memory,
      apply: (commands) => (hangs ? commands.map(never) : memory.apply(commands)),
      read: (key) => {
        if (!hangs) return memory.read(key);
        arrived();
        return never();
      },
    };
    const closeMs = 3_000;
    const scene = await stage({ store, limits: { closeMs } });
    await scene.acquire('a/b');
    // Claims that wait have to be withdrawn, and reads are in flight: neither is ever answered.
    const waiting = Promise.allSettled([scene.post(ACQUIRE, { ttl: '30s', wait: '60s' })]);
    await until(async () => (await scene.get('/v2/locks/a/b')).body.waiting === 1, 'it waits');
    hangs = true;
    const reading = Promise.allSettled([scene.get('/v2/locks/a/b')]);
    await isAsked;
    const sinceMs = performance.now();
    await scene.service.close();
    expect(performance.now() - sinceMs).toBeLessThan(1.75 * closeMs);
    await Promise.all([waiting, reading]);
  });
});
