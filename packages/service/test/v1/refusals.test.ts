import type { Store } from 'holdfast';
import { memoryStore } from 'holdfast/memory';
import { afterEach, describe, expect, it } from 'vitest';
import { type Authenticator, Problem } from '../../src/index.js';
import { clearScene, STORES, stage, until } from '../scene.js';

afterEach(clearScene);

const LOCK = '/v1/billing/lock/order-1';
const lease = { instanceId: 'one-instance', leaseDuration: 60 };

const NOWHERE = [
  ['GET', '/v1'],
  ['GET', '/v1/'],
  ['GET', '/v1/billing'],
  ['GET', '/v1/billing/lock'],
  ['GET', '/v1/billing/lock/'],
  ['GET', '/v1//lock/order-1'],
  ['GET', `${LOCK}/`],
  ['GET', `${LOCK}/acquire/now`],
  ['POST', `${LOCK}/evict`],
  ['GET', '/v1/billing/locks/order-1'],
  ['DELETE', '/v1/anything'],
] as const;

const WRONG_METHODS = [
  ['POST', LOCK, 'GET, HEAD'],
  ['PUT', LOCK, 'GET, HEAD'],
  ['DELETE', LOCK, 'GET, HEAD'],
  ['DELETE', `${LOCK}?force=true`, 'GET, HEAD'],
  ['GET', `${LOCK}/acquire`, 'POST'],
  ['PUT', `${LOCK}/renew`, 'POST'],
  ['DELETE', `${LOCK}/release`, 'POST'],
] as const;

for (const [name, newStore] of Object.entries(STORES)) {
  describe(`404 and 405 on ${name}`, () => {
    it('a path that is not there is 404 with message and errorId', async () => {
      const { call } = await stage({ store: newStore() });
      for (const [method, path] of NOWHERE) {
        const { status, body, headers } = await call(method, path);
        expect([path, status, body]).toEqual([
          path,
          404,
          { message: 'Resource not found', errorId: headers.get('x-request-id') },
        ]);
      }
    });

    it('an errorId is a UUID, as it is there', async () => {
      const { get } = await stage({ store: newStore() });
      const { body } = await get('/v1/nowhere');
      expect(body.errorId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    });

    it('load balancers that were set up for LockServiceCentral find its health', async () => {
      const { get, url } = await stage({ store: newStore() });
      const { status, body } = await get('/actuator/health');
      expect([status, body]).toEqual([200, { status: 'UP' }]);
      expect((await fetch(`${url}/actuator/health`, { method: 'HEAD' })).status).toBe(200);
    });

    it('a method that does not work is 405 with message and errorId, and says which do', async () => {
      const { call } = await stage({ store: newStore() });
      for (const [method, path, allow] of WRONG_METHODS) {
        const { status, body, headers } = await call(method, path);
        expect([path, status, body, headers.get('allow')]).toEqual([
          path,
          405,
          { message: 'Method not allowed', errorId: headers.get('x-request-id') },
          allow,
        ]);
      }
    });

    it('HEAD answers as GET does, without a body', async () => {
      const { url } = await stage({ store: newStore() });
      const answer = await fetch(url + LOCK, { method: 'HEAD' });
      expect([answer.status, await answer.text()]).toEqual([200, '']);
    });
  });
}

describe('when the store does not answer', () => {
  const silent = (): Store => {
    const store = memoryStore();
    const fail = (): Promise<never> => Promise.reject(new Error('the disk is at C:/secret'));
    return { ...store, apply: (commands) => commands.map(fail), read: fail };
  };

  it('everything is 500 with message and errorId: never 423, never 200, never free', async () => {
    const { call, lines } = await stage({ store: silent() });
    const answers = await Promise.all([
      call('GET', LOCK),
      call('POST', `${LOCK}/acquire`, lease),
      call('POST', `${LOCK}/renew`, lease),
      call('POST', `${LOCK}/release`, { instanceId: 'one-instance' }),
    ]);
    for (const { status, body, headers, text } of answers) {
      const errorId = headers.get('x-request-id');
      expect([status, body]).toEqual([500, { message: 'Internal server error', errorId }]);
      expect(text).not.toContain('secret');
      expect(lines.filter((line) => line.includes(errorId ?? '?') && line.includes('problem'))).toHaveLength(
        1,
      );
    }
    expect(lines.join('')).not.toContain('one-instance');
  });
});

describe('who may', () => {
  const guard: Authenticator = {
    authenticate({ headers }) {
      const owner = headers.authorization?.replace(/^Bearer /, '');
      if (!owner) {
        throw new Problem('unauthorized', 'Who are you?', { headers: { 'www-authenticate': 'Bearer' } });
      }
      return {
        id: owner,
        owner,
        may: (_role, namespace) => namespace === owner,
        prefixes: () => [`${owner}/`],
      };
    },
  };
  const ada = { authorization: 'Bearer ada-space' };
  const PATH = '/v1/ada-space/lock/order-1';

  it('without a token it is 401, in the words of this contract', async () => {
    const { call } = await stage({ auth: guard });
    for (const [method, path] of [
      ['GET', PATH],
      ['POST', `${PATH}/acquire`],
      ['POST', `${PATH}/release`],
    ] as const) {
      const { status, body, headers } = await call(method, path);
      expect([status, headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
      expect(Object.keys(body)).toEqual(['message', 'errorId']);
    }
  });

  it('a foreign namespace is 403 for every verb, held or free', async () => {
    const { call } = await stage({ auth: guard });
    expect((await call('POST', `${PATH}/acquire`, lease, ada)).status).toBe(200);
    const bob = { authorization: 'Bearer bob-space' };
    for (const path of [PATH, '/v1/ada-space/lock/free']) {
      const look = await call('GET', path, undefined, bob);
      expect([look.status, Object.keys(look.body)]).toEqual([403, ['message', 'errorId']]);
    }
    for (const verb of ['acquire', 'renew']) {
      const { status, body } = await call('POST', `${PATH}/${verb}`, lease, bob);
      expect([status, Object.keys(body)]).toEqual([403, ['message', 'errorId']]);
    }
    const release = await call('POST', `${PATH}/release`, { instanceId: 'one-instance' }, bob);
    expect(release.status).toBe(403);
    expect((await call('GET', PATH, undefined, ada)).body.owner).toBe('ada-space');
  });

  it('caps of a principal hold here too, but nobody loses a lock that they acquire again or renew', async () => {
    const held = new Map<string, number>();
    const capped: Authenticator = {
      authenticate: () => ({
        id: 'ada',
        owner: 'ada',
        may: () => true,
        prefixes: () => [''],
        checkTtl(_key, ttlMs) {
          if (ttlMs > 100_000) throw new Problem('forbidden', 'Too long.');
        },
        async undertake({ key, hold }) {
          const isHeld = hold !== undefined && held.has(`${key} ${hold}`);
          if (held.size >= 1 && !isHeld) throw new Problem('rate-limited', 'Too many.');
          return () => undefined;
        },
        holds(key, hold, ttlMs) {
          if (ttlMs > 0) held.set(`${key} ${hold}`, ttlMs);
          else held.delete(`${key} ${hold}`);
        },
      }),
    };
    const { post } = await stage({ auth: capped });
    expect((await post(`${LOCK}/acquire`, lease)).status).toBe(200);
    expect((await post('/v1/billing/lock/order-2/acquire', lease)).status).toBe(429);
    expect((await post(`${LOCK}/acquire`, lease)).status).toBe(200);
    expect((await post(`${LOCK}/renew`, { ...lease, leaseDuration: 20 })).status).toBe(200);
    // What is added counts as what is held.
    expect((await post(`${LOCK}/renew`, lease)).status).toBe(403);
    expect((await post('/v1/billing/lock/order-2/acquire', { ...lease, leaseDuration: 101 })).status).toBe(
      403,
    );
    expect((await post(`${LOCK}/release`, { instanceId: 'one-instance' })).status).toBe(200);
    expect(held.size).toBe(0);
    expect((await post('/v1/billing/lock/order-2/acquire', lease)).status).toBe(200);
  });
});

describe('the log', () => {
  it('has one line a request, with key and outcome, and never an instance', async () => {
    const { call, post, lines } = await stage();
    await post(`${LOCK}/acquire`, lease);
    await post(`${LOCK}/acquire`, { ...lease, instanceId: 'two-instance' });
    await post(`${LOCK}/renew`, lease);
    await post(`${LOCK}/release`, { instanceId: 'one-instance' });
    await post(`${LOCK}/release`, { instanceId: 'one-instance', foo: 1 });
    await call('GET', LOCK);
    await until(() => lines.length === 6, 'all are logged');
    const logged = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(logged.map(({ outcome }) => outcome)).toEqual([
      'granted',
      'busy',
      'renewed',
      'released',
      'invalid-argument',
      'ok',
    ]);
    expect(logged[0]).toMatchObject({ key: 'billing/order-1', principal: 'anonymous', status: 200 });
    expect(lines.join('')).not.toContain('-instance');
  });
});
