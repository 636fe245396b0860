import { writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import type { Store } from 'holdfast';
import { memoryStore } from 'holdfast/memory';
import { afterEach, describe, expect, it } from 'vitest';
import type { PrincipalLimits } from '../../src/auth/allowance.js';
import { createApiKey, createAuth, revokeApiKeys } from '../../src/auth/index.js';
import { addressGroup } from '../../src/http/addresses.js';
import { atTheEnd, clearScene, listen, pause, type Stage, stage, until } from '../scene.js';
import { bearer, keyFile } from './issuer.js';

afterEach(clearScene);

type As = Record<string, string>;

async function limited(
  limits: Partial<PrincipalLimits>,
): Promise<Stage & { readonly ada: As; readonly bob: As }> {
  const { path, keys } = await keyFile({ ada: ['admin:*'], bob: ['admin:*'] });
  const scene = await stage({ auth: createAuth({ apiKeys: path, limits }) });
  return { ...scene, ada: bearer(keys.ada), bob: bearer(keys.bob) };
}

const LOOK = '/v2/locks/own/a';

describe('a principal', () => {
  it('that asks too often is told so, with when to come back; others are not', async () => {
    const { call, ada, bob } = await limited({ requestsPerSecond: 1, requestBurst: 3 });
    const sinceMs = performance.now();
    const answers = await Promise.all(Array.from({ length: 20 }, () => call('GET', LOOK, undefined, ada)));
    const seconds = (performance.now() - sinceMs) / 1_000;
    const allowed = answers.filter(({ status }) => status === 200);
    expect(allowed.length).toBeLessThanOrEqual(4 + seconds);
    const refused = answers.find(({ status }) => status === 429);
    expect(refused?.body.code).toBe('rate-limited');
    expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect((await call('GET', LOOK, undefined, bob)).status).toBe(200);
    await until(
      async () => (await call('GET', LOOK, undefined, ada)).status === 200,
      'the rate allows one more',
    );
  });

  it('pays for a large batch as for many requests', async () => {
    const { call, post, ada, bob } = await limited({ requestsPerSecond: 1, requestBurst: 8 });
    const renew = { kind: 'renew', key: 'own/a', ttlMs: 1_000, block: false };
    const commands = Array.from({ length: 512 }, (_, index) => {
      return { ...renew, hold: { process: 'nobody', number: index + 1 } };
    });
    expect((await post('/v2/batch', { commands }, ada)).status).toBe(200);
    expect((await call('GET', LOOK, undefined, ada)).status).toBe(429);
    expect((await post('/v2/batch', { commands: commands.slice(0, 49) }, bob)).status).toBe(200);
    expect((await call('GET', LOOK, undefined, bob)).status).toBe(200);
  });

  it('holds no more locks than it may, however many it asks for at once; renewing is not holding one more', async () => {
    const { post, ada, bob } = await limited({ held: 3 });
    const acquire = (name: number, as: As) => post(`/v2/locks/own/${name}/acquire`, { ttl: '30s' }, as);
    const answers = await Promise.all(Array.from({ length: 12 }, (_, name) => acquire(name, ada)));
    const granted = answers.filter(({ status }) => status === 200);
    expect(granted).toHaveLength(3);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 429]));
    expect((await acquire(20, bob)).status).toBe(200);
    const [first] = granted;
    const path = `/v2/locks/${String(first?.body.key)}`;
    expect((await post(`${path}/renew`, { hold: first?.body.hold, ttl: '40s' }, ada)).status).toBe(200);
    expect((await acquire(21, ada)).status).toBe(429);
    await post(`${path}/release`, { hold: first?.body.hold }, ada);
    expect((await acquire(21, ada)).status).toBe(200);
  });

  it('gets the same grant again at its cap, by its hold or its Idempotency-Key', async () => {
    const { post, ada } = await limited({ held: 1 });
    const acquire = (name: string, as: As) => post(`/v2/locks/own/${name}/acquire`, { ttl: '30s' }, as);
    const again = { ...ada, 'idempotency-key': 'a-key-that-nobody-can-guess' };
    const first = await acquire('a', again);
    expect((await acquire('b', ada)).status).toBe(429);
    expect((await acquire('a', again)).body).toMatchObject({
      token: first.body.token,
      hold: first.body.hold,
    });
  });

  it('has room again when what it held has expired', async () => {
    const { post, ada } = await limited({ held: 1 });
    const acquire = (name: string) => post(`/v2/locks/own/${name}/acquire`, { ttl: 3_000 }, ada);
    expect((await acquire('a')).status).toBe(200);
    expect((await acquire('b')).status).toBe(429);
    await until(async () => (await acquire('b')).status === 200, 'there is room again');
  });

  it('that asks for less of what it has still has it: neither renewing nor acquiring shortens a grant', async () => {
    const { post, ada } = await limited({ held: 2 });
    const path = '/v2/locks/own/long';
    const hold = 'own-secret-of-ada.1';
    const renewed = { kind: 'renew', key: 'own/long', hold: { process: 'own-secret-of-ada', number: 1 } };
    const added = { ms: -30_000, expiresAt: 0 };
    expect((await post(`${path}/acquire`, { ttl: '30s', hold }, ada)).status).toBe(200);
    expect((await post('/v2/locks/own/other/acquire', { ttl: '30s' }, ada)).status).toBe(200);
    for (const ask of [
      () => post(`${path}/renew`, { ttl: 10, hold }, ada),
      () => post(`${path}/acquire`, { ttl: 10, hold }, ada),
      () => post('/v2/batch', { commands: [{ ...renewed, ttlMs: 1, block: false }] }, ada),
      () => post('/v2/batch', { commands: [{ ...renewed, ttlMs: 1, block: false, added }] }, ada),
    ]) {
      expect((await ask()).status).toBe(200);
      await pause(100);
      expect((await post('/v2/locks/own/more/acquire', { ttl: '30s' }, ada)).status).toBe(429);
    }
  });

  it('still has what is in its cool-down after it was released twice', async () => {
    const { post, ada } = await limited({ held: 1 });
    const { body } = await post('/v2/locks/own/rests/acquire', { ttl: '30s', minHold: '30s' }, ada);
    for (const held of [true, false]) {
      const released = await post('/v2/locks/own/rests/release', { hold: body.hold }, ada);
      expect(released.body.held).toBe(held);
      expect((await post('/v2/locks/own/more/acquire', { ttl: '30s' }, ada)).status).toBe(429);
    }
  });

  it('may renew what it got through another process, though it holds as many as it may', async () => {
    const { post, ada, bob } = await limited({ held: 1 });
    const { body } = await post('/v2/locks/own/elsewhere/acquire', { ttl: '30s' }, bob);
    await post('/v2/locks/own/here/acquire', { ttl: '30s' }, ada);
    const renewal = await post('/v2/locks/own/elsewhere/renew', { hold: body.hold, ttl: '40s' }, ada);
    expect(renewal.status).toBe(200);
  });

  it('is held to the same number in a batch', async () => {
    const { post, ada } = await limited({ held: 2 });
    const commands = Array.from({ length: 5 }, (_, number) => ({
      ...{ kind: 'claim', key: `own/${number}`, hold: { process: 'p', number: number + 1 }, owner: 'o' },
      ...{ permits: 1, capacity: 1, ttlMs: 30_000, queue: false, inbox: null, metadata: null },
    }));
    const replies = (await post('/v2/batch', { commands }, ada)).body.replies as {
      problem?: { code: string };
    }[];
    const codes = replies.map(({ problem }) => problem?.code ?? 'answered');
    expect(codes.filter((code) => code === 'answered')).toHaveLength(2);
    expect(codes.filter((code) => code === 'rate-limited')).toHaveLength(3);
  });

  it('waits no more often than it may, and may wait again when one wait is over', async () => {
    const { post, ada, bob } = await limited({ waiters: 2 });
    await post('/v2/locks/own/a/acquire', { ttl: '30s' }, bob);
    const wait = (waitMs: number) => post('/v2/locks/own/a/acquire', { ttl: '30s', wait: waitMs }, ada);
    const waiting = [wait(6_000), wait(6_000)];
    await until(async () => (await wait(100)).status === 429, 'two wait');
    expect((await post('/v2/locks/own/b/acquire', { ttl: '30s' }, ada)).status).toBe(200);
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([423, 423]);
    expect((await wait(50)).status).toBe(423);
  });

  it('holds no lock for longer at a time than it may, by acquire, renew or batch', async () => {
    const { post, ada } = await limited({ ttlMsMax: 60_000 });
    const long = await post('/v2/locks/own/a/acquire', { ttl: '2m' }, ada);
    expect([long.status, long.body.code]).toEqual([403, 'forbidden']);
    const { body } = await post('/v2/locks/own/a/acquire', { ttl: '1m' }, ada);
    expect((await post('/v2/locks/own/a/renew', { hold: body.hold, ttl: '2m' }, ada)).status).toBe(403);
    const [process, number] = String(body.hold).split('.');
    const renew = {
      kind: 'renew',
      key: 'own/a',
      hold: { process, number: Number(number) },
      ttlMs: 120_000,
      block: false,
    };
    const replies = (await post('/v2/batch', { commands: [renew] }, ada)).body.replies;
    expect(replies).toMatchObject([{ problem: { code: 'forbidden' } }]);
  });

  it('holds nothing that was given back because nobody was there any more to hear of it', async () => {
    const { path, keys } = await keyFile({ ada: ['admin:*'] });
    const inner = memoryStore();
    let answer = (): void => undefined;
    const allowed = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const slow: Store = {
      ...inner,
      apply: (commands) => inner.apply(commands).map((reply) => allowed.then(() => reply)),
    };
    const auth = createAuth({ apiKeys: path, limits: { held: 1 } });
    const { url, post } = await stage({ auth, store: slow });
    const leaving = new AbortController();
    const headers = { ...bearer(keys.ada), 'content-type': 'application/json' };
    const body = JSON.stringify({ ttl: '1h' });
    const left = fetch(`${url}/v2/locks/own/a/acquire`, {
      method: 'POST',
      headers,
      body,
      signal: leaving.signal,
    });
    const failed = expect(left).rejects.toThrow();
    await until(async () => (await inner.read('own/a')) !== null, 'it is granted');
    leaving.abort();
    await failed;
    // The service is in this process: it has seen the client go when the event loop has turned a few times.
    for (let turns = 0; turns < 5; turns += 1) await pause(40);
    answer();
    await until(async () => (await inner.read('own/a')) === null, 'it is given back');
    expect((await post('/v2/locks/own/b/acquire', { ttl: '1h' }, bearer(keys.ada))).status).toBe(200);
  });

  it('is not given limits that make no sense', async () => {
    const { path } = await keyFile({ ada: ['read:*'] });
    expect(() => createAuth({ apiKeys: path, limits: { held: 0 } })).toThrow(/above 0/);
    expect(() => createAuth({ apiKeys: path, limits: { hold: 1 } as never })).toThrow(/no limit "hold"/);
  });
});

describe('whoever guesses', () => {
  const wrong = (text: string): string => `${text.slice(0, -4)}${text.endsWith('AAAA') ? 'BBBB' : 'AAAA'}`;

  it('at a key is slowed down to 429 after ten tries, and the right key is let in all the same', async () => {
    const { path, keys } = await keyFile({ ada: ['read:*'], bob: ['read:*'] });
    const { call } = await stage({ auth: createAuth({ apiKeys: path }) });
    const statusOf = async (text: string): Promise<number> =>
      (await call('GET', LOOK, undefined, bearer(text))).status;
    const statuses: number[] = [];
    for (let count = 0; count < 20; count += 1) statuses.push(await statusOf(wrong(keys.ada)));
    expect(statuses[0]).toBe(401);
    expect(statuses.at(-1)).toBe(429);
    expect(statuses.filter((status) => status === 401).length).toBeLessThanOrEqual(13);
    for (let count = 0; count < 5; count += 1) {
      expect(await statusOf(keys.ada)).toBe(200);
      expect(await statusOf(wrong(keys.ada))).toBe(429);
    }
    expect(await statusOf(keys.bob)).toBe(200);
  });

  it('ids, and tokens, is slowed down too, without shutting out those who have good ones', async () => {
    const { path, keys } = await keyFile({ ada: ['read:*'] });
    const { call } = await stage({ auth: createAuth({ apiKeys: path }) });
    const answers: number[] = [];
    for (let count = 0; count < 20; count += 1) {
      const text = `hfk_${String(count).padStart(12, '0')}_${'A'.repeat(44)}`;
      answers.push((await call('GET', LOOK, undefined, bearer(text))).status);
    }
    expect([answers[0], answers.at(-1)]).toEqual([401, 429]);
    expect((await call('GET', LOOK, undefined, bearer(keys.ada))).status).toBe(200);
  });

  it('a program that goes on with a revoked key does not shut out the one that has the new key', async () => {
    const { path, keys } = await keyFile({ ada: ['read:*'] });
    const { text } = await createApiKey({ path, by: 'test' }, { name: 'ada' });
    await revokeApiKeys({ path, by: 'test' }, keys.ada.slice(4, 16));
    const { call } = await stage({ auth: createAuth({ apiKeys: path }) });
    for (let count = 0; count < 30; count += 1) await call('GET', LOOK, undefined, bearer(keys.ada));
    expect((await call('GET', LOOK, undefined, bearer(text))).status).toBe(200);
  });

  it('is known by its address; an IPv6 one with the whole of its network', () => {
    expect(addressGroup('192.0.2.7')).toBe('192.0.2.7');
    expect(addressGroup('::ffff:192.0.2.7')).toBe('192.0.2.7');
    expect(addressGroup('2001:db8:1:2:3:4:5:6')).toBe(addressGroup('2001:db8:1:2::9'));
    expect(addressGroup('2001:db8:1:3::9')).not.toBe(addressGroup('2001:db8:1:2::9'));
    expect(addressGroup('::1')).toBe('0:0:0:0');
  });
});

describe('a key that is revoked while its request waits', () => {
  it('gets no lock: it is given back', async () => {
    const { path, keys } = await keyFile({ ada: ['lock:own'], bob: ['admin:*'] });
    const { post, call } = await stage({ auth: createAuth({ apiKeys: path }) });
    const { body } = await post('/v2/locks/own/a/acquire', { ttl: '30s' }, bearer(keys.bob));
    const waiting = post('/v2/locks/own/a/acquire', { ttl: '30s', wait: '20s' }, bearer(keys.ada));
    await pause(300);
    await revokeApiKeys({ path, by: 'test' }, 'ada');
    await pause(500);
    await post('/v2/locks/own/a/release', { hold: body.hold }, bearer(keys.bob));
    expect((await waiting).status).toBe(403);
    const look = async (): Promise<unknown> =>
      (await call('GET', '/v2/locks/own/a', undefined, bearer(keys.bob))).body.holders;
    await until(async () => JSON.stringify(await look()) === '[]', 'the lock is free again');
    writeFileSync(path, '{}');
  });

  it.each([{}, { hold: 'the-own-hold-of-ada.1' }])(
    'is answered soon, waits no longer, and is shown no holder (%j)',
    async (own) => {
      const { path, keys } = await keyFile({ ada: ['lock:own'], bob: ['lock:own'] });
      const { post, call } = await stage({ auth: createAuth({ apiKeys: path }) });
      const metadata = { customer: 'secret' };
      await post('/v2/locks/own/a/acquire', { ttl: '20m', owner: 'bob', metadata }, bearer(keys.bob));
      const wanted = { ttl: '30s', wait: '10m', ...own };
      const waiting = post('/v2/locks/own/a/acquire', wanted, bearer(keys.ada));
      const waiters = async (): Promise<unknown> =>
        (await call('GET', '/v2/locks/own/a', undefined, bearer(keys.bob))).body.waiters;
      await until(async () => JSON.stringify(await waiters()).includes('ada'), 'ada waits');
      await revokeApiKeys({ path, by: 'test' }, 'ada');
      const { status, text } = await waiting;
      expect(status).toBe(403);
      expect(text).not.toMatch(/bob|secret/);
      await until(async () => JSON.stringify(await waiters()) === '[]', 'nobody waits');
    },
  );

  it('is shown no holder when its time is over', async () => {
    const store = memoryStore();
    await (await stage({ store })).acquire('own/a', { owner: 'bob' });
    let checks = 0;
    const may = (): boolean => checks++ === 0;
    const principal = { id: 'key:ada', owner: 'ada', may, prefixes: () => [] };
    const { post } = await stage({ store, auth: { authenticate: () => principal } });
    const { status, text } = await post('/v2/locks/own/a/acquire', { ttl: '30s', wait: '100ms' });
    expect(status).toBe(403);
    expect(text).not.toContain('bob');
  });
});

it('many principals on one connection, as behind a proxy, are no reason to warn', async () => {
  const names = Array.from({ length: 12 }, (_, number) => `user-${number}`);
  const { path, keys } = await keyFile(Object.fromEntries(names.map((name) => [name, ['read:own']])));
  const { url } = await stage({ auth: createAuth({ apiKeys: path }) });
  const warnings: string[] = [];
  const onWarning = ({ name }: Error): void => void warnings.push(name);
  process.on('warning', onWarning);
  atTheEnd(() => process.off('warning', onWarning));
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  atTheEnd(() => agent.destroy());
  for (const name of names) {
    const headers = bearer(keys[name] ?? '');
    const status = await new Promise((resolve, reject) => {
      get(url + LOOK, { agent, headers }, (answer) => {
        answer.resume().on('end', () => resolve(answer.statusCode));
      }).on('error', reject);
    });
    expect(status).toBe(200);
  }
  await pause(50);
  expect(warnings).toEqual([]);
});

it('a key that is revoked does not keep its streams open', async () => {
  const { path, keys } = await keyFile({ ada: ['read:own'], bob: ['read:own'] });
  const { url } = await stage({ auth: createAuth({ apiKeys: path }) });
  const [ada, bob] = await Promise.all(
    [keys.ada, keys.bob].map((key) => listen(url, '/v2/events', bearer(key))),
  );
  let isOver = false;
  let isBobs = false;
  void ada?.closed.then(() => {
    isOver = true;
  });
  void bob?.closed.then(() => {
    isBobs = true;
  });
  await revokeApiKeys({ path, by: 'test' }, 'ada');
  await until(() => isOver, 'the stream ended', 40_000);
  expect(isBobs).toBe(false);
  bob?.close();
}, 60_000);
