/** Limits keep a tenant from acquiring more, never from keeping or giving back what it holds. */
import { createLocks } from 'holdfast';
import { httpStore } from 'holdfast/http';
import { memoryStore } from 'holdfast/memory';
import { afterEach, describe, expect, it } from 'vitest';
import { Allowance, type PrincipalLimits, principalLimitsOf } from '../../src/auth/allowance.js';
import { createAuth } from '../../src/auth/index.js';
import { type Answer, atTheEnd, clearScene, pause, type Stage, stage, until } from '../scene.js';
import { bearer, keyFile } from './issuer.js';

afterEach(clearScene);

/** Only the burst: nothing is added while a test runs. */
const noMoreThan = (requestBurst: number) => ({ requestsPerSecond: 0.001, requestBurst });

async function tenant(limits: Partial<PrincipalLimits>, store = memoryStore()) {
  const { path, keys } = await keyFile({ ada: ['lock:own'] });
  const scene = await stage({ auth: createAuth({ apiKeys: path, limits }), store });
  return { ...scene, apiKey: keys.ada, ada: bearer(keys.ada) };
}

const kindsIn = ({ body }: Answer): readonly string[] =>
  (body.replies as { kind?: string; problem?: { code: string } }[]).map(
    ({ kind, problem }) => problem?.code ?? kind ?? '',
  );

const command = (kind: 'claim' | 'renew' | 'release', name: string, number = 1): object => {
  const rest = {
    claim: { owner: 'o', permits: 1, capacity: 1, ttlMs: 30_000, queue: false, inbox: null, metadata: null },
    renew: { ttlMs: 30_000, block: false },
    release: { minHoldMs: 0 },
  }[kind];
  return { kind, key: `own/${name}`, hold: { process: 'the-own-hold-of-ada', number }, ...rest };
};

async function useUpRate({ call }: Pick<Stage, 'call'>, as: Record<string, string>): Promise<void> {
  await until(
    async () => (await call('GET', '/v2/locks/own/any', undefined, as)).status === 429,
    'the rate is used up',
  );
}

describe('a tenant over its rate', () => {
  it('renews and releases as before, over /v2 and /v1', async () => {
    const scene = await tenant(noMoreThan(4));
    const { post, ada } = scene;
    const { body } = await post('/v2/locks/own/a/acquire', { ttl: '30s' }, ada);
    const lease = { instanceId: 'one-instance', leaseDuration: 60 };
    expect((await post('/v1/own/lock/old/acquire', lease, ada)).status).toBe(200);
    await useUpRate(scene, ada);
    expect((await post('/v2/locks/own/b/acquire', { ttl: '30s' }, ada)).status).toBe(429);
    for (let count = 0; count < 10; count += 1) {
      expect((await post('/v2/locks/own/a/renew', { hold: body.hold, ttl: '30s' }, ada)).status).toBe(200);
      expect((await post('/v1/own/lock/old/renew', lease, ada)).status).toBe(200);
    }
    expect((await post('/v2/locks/own/a/release', { hold: body.hold }, ada)).body.held).toBe(true);
    expect((await post('/v1/own/lock/old/release', { instanceId: lease.instanceId }, ada)).status).toBe(200);
  });

  it('has its renewals and releases done in a batch: only the claims among them are refused', async () => {
    const scene = await tenant(noMoreThan(3));
    const { post, ada } = scene;
    const batch = async (...commands: readonly object[]) =>
      kindsIn(await post('/v2/batch', { commands }, ada));
    expect(await batch(command('claim', 'a'), command('claim', 'b'))).toEqual(['granted', 'granted']);
    await useUpRate(scene, ada);
    expect(await batch(command('renew', 'a'), command('claim', 'c'), command('release', 'b'))).toEqual([
      ...['renewed', 'rate-limited', 'released'],
    ]);
    expect(await batch(command('renew', 'a'))).toEqual(['renewed']);
    expect(await batch(command('release', 'a'))).toEqual(['released']);
  });

  it('keeps a lease of the library through several ttls', async () => {
    const scene = await tenant(noMoreThan(20));
    const store = httpStore({ url: scene.url, apiKey: scene.apiKey });
    const locks = createLocks(store, { namespace: 'own' });
    atTheEnd(() => locks.close());
    const lost: unknown[] = [];
    locks.on('lost', (event) => lost.push(event));
    const lease = await locks.acquire('work', { ttl: '2s' });
    await useUpRate(scene, scene.ada);
    await pause(4_500);
    lease.assertHeld();
    expect(lost).toEqual([]);
    await lease.release();
    expect(await scene.store.read('own/work')).toBeNull();
  });
});

it('one busy tenant may ask for 10,000 locks in one moment by default', () => {
  const allowance = new Allowance('key:ada', principalLimitsOf({}));
  for (let count = 0; count < 10_000; count += 1) allowance.request();
});

describe('renewals of what is not held', () => {
  it('cost their tenant what it could acquire with, and no valid renewal', async () => {
    const { post, ada } = await tenant(noMoreThan(5));
    const { body } = await post('/v2/locks/own/a/acquire', { ttl: '30s' }, ada);
    const wrong = () => post('/v2/locks/own/a/renew', { hold: 'never-was-a-hold.1', ttl: '30s' }, ada);
    for (let count = 0; count < 6; count += 1) expect((await wrong()).status).toBe(409);
    expect((await post('/v2/locks/own/b/acquire', { ttl: '30s' }, ada)).status).toBe(429);
    expect((await post('/v2/locks/own/a/renew', { hold: body.hold, ttl: '30s' }, ada)).status).toBe(200);
  });

  it('past the rate are asked of the store one at a time', async () => {
    const memory = memoryStore();
    let open = 0;
    let openMax = 0;
    const store: typeof memory = {
      ...memory,
      apply: (commands) => {
        open += commands.length;
        openMax = Math.max(openMax, open);
        return memory.apply(commands).map((reply) =>
          pause(5).then(() => {
            open -= 1;
            return reply;
          }),
        );
      },
    };
    const { post, ada } = await tenant(noMoreThan(10), store);
    const wrong = () => post('/v2/locks/own/a/release', { hold: 'never-was-a-hold.1' }, ada);
    const flood = async (count: number): Promise<readonly number[]> =>
      (await Promise.all(Array.from({ length: count }, wrong))).map(({ status }) => status);
    expect(new Set(await flood(20))).toEqual(new Set([200]));
    openMax = 0;
    expect(new Set(await flood(20))).toEqual(new Set([200]));
    expect(openMax).toBe(1);
  });
});

it('a release over httpStore with a minHold beyond the limit keeps the lock for as long as the limit', async () => {
  const store = memoryStore();
  const { url, apiKey } = await tenant({ ttlMsMax: 60_000 }, store);
  const locks = createLocks(httpStore({ url, apiKey }), { namespace: 'own' });
  atTheEnd(() => locks.close());
  const lease = await locks.acquire('a', { ttl: '10s', minHold: '2m' });
  await lease.release();
  expect((await store.read('own/a'))?.holders).toEqual([
    expect.objectContaining({ resting: true, expiresAt: lease.acquiredAt.getTime() + 60_000 }),
  ]);
});

it('a release with a minHold beyond the limit, its own or that of its acquire, keeps the lock for as long as the limit', async () => {
  const store = memoryStore();
  const before = await tenant({}, store);
  // The limit was lowered, and the service restarted.
  const { post, ada } = await tenant({ ttlMsMax: 60_000 }, store);
  const asked = { ttl: '10s', minHold: '2m' };
  const { body } = await before.post('/v2/locks/own/a/acquire', asked, before.ada);
  const own = await post('/v2/locks/own/b/acquire', { ttl: '10s' }, ada);
  for (const [name, release] of [
    ['a', { hold: body.hold }],
    ['b', { hold: own.body.hold, minHold: '2m' }],
  ] as const) {
    const released = await post(`/v2/locks/own/${name}/release`, release, ada);
    expect([name, released.status, released.body.held]).toEqual([name, 200, true]);
    const [holder] = (await store.read(`own/${name}`))?.holders ?? [];
    expect(holder).toMatchObject({ resting: true });
    expect((holder?.expiresAt ?? 0) - (holder?.acquiredAt ?? 0)).toBe(60_000);
  }
});
