import { memoryStore } from 'holdfast/memory';
import { afterEach, describe, expect, it } from 'vitest';
import { authFromSettings, createAuth } from '../../src/auth/index.js';
import { createService, type Part } from '../../src/index.js';
import { atTheEnd, clearScene, stage } from '../scene.js';
import { AUDIENCE, bearer, issuer, keyFile } from './issuer.js';

afterEach(clearScene);

describe('without auth', () => {
  it('the service listens on loopback only', async () => {
    for (const host of ['0.0.0.0', '::', '192.0.2.1', 'example.org', '127.0.0.1.example.org', '']) {
      const service = createService({ store: memoryStore() });
      atTheEnd(() => service.close());
      await expect(service.listen({ host }), host).rejects.toThrow(/loopback only/);
    }
    const { url } = await stage();
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:/);
  });

  it('it listens elsewhere when it is told that this is insecure, or has auth', async () => {
    const { path } = await keyFile({ ada: ['read:*'] });
    for (const options of [{ insecure: true }, { auth: createAuth({ keys: path }) }]) {
      const service = createService({ store: memoryStore(), ...options });
      atTheEnd(() => service.close());
      expect(await service.listen({ host: '0.0.0.0' })).toMatch(/^http:/);
    }
  });
});

describe('with auth', () => {
  it('a route that does not say who may use it is for nobody', async () => {
    const forgotten: Part = {
      name: 'forgotten',
      register: (app) => {
        app.get('/forgotten', () => 'secret');
      },
    };
    const { path, keys } = await keyFile({ god: ['admin:*'] });
    const { call } = await stage({ auth: createAuth({ keys: path }), parts: [forgotten] });
    const { status, text } = await call('GET', '/forgotten', undefined, bearer(keys.god));
    expect([status, text.includes('secret')]).toEqual([403, false]);
  });

  it('has to be configured with something', () => {
    expect(() => createAuth({})).toThrow(/file of API keys/);
  });
});

describe('the settings of LockServiceCentral', () => {
  it('a good token may use every lock, and evict none', async () => {
    const from = await issuer();
    const settings = { JWT_ISSUER: from.url, JWT_AUDIENCE: AUDIENCE, JWT_JWKS: `${from.url}/jwks` };
    const { auth, disabled } = authFromSettings(settings);
    expect(disabled).toBe(false);
    const { post } = await stage(auth ? { auth } : {});
    const token = bearer(await from.token({ holdfast: undefined }));
    expect((await post('/v2/locks/any/a/acquire', { ttl: '30s' }, token)).body.owner).toBe('ada');
    expect((await post('/v2/locks/any/a/evict', {}, token)).status).toBe(403);
    expect((await post('/v2/locks/any/a/acquire', { ttl: '30s' })).status).toBe(401);
  });

  it('the keys alone, or the issuer alone, are enough, as there; what that leaves open is noted', async () => {
    const from = await issuer();
    const open = authFromSettings({ JWT_JWKS: `${from.url}/jwks`, AUTHENTICATION_DISABLED: 'true' });
    expect([open.disabled, open.notes.length]).toEqual([false, 3]);
    const discovered = authFromSettings({ JWT_ISSUER: from.url });
    expect(discovered.notes).toEqual([expect.stringContaining('JWT_AUDIENCE is missing')]);
    for (const { auth } of [open, discovered]) {
      const { call } = await stage(auth ? { auth } : {});
      const statusOf = async (token: string): Promise<number> =>
        (await call('GET', '/v2/locks/any/a', undefined, bearer(token))).status;
      expect(await statusOf(await from.token({ aud: 'something-else' }))).toBe(200);
      expect(await statusOf(await from.token({ exp: 1 }))).toBe(401);
      expect((await call('GET', '/v2/locks/any/a')).status).toBe(401);
    }
  });

  it('switched off in so many words, or not named, there is no auth', () => {
    const none = { disabled: false, notes: [] };
    expect(authFromSettings({ AUTHENTICATION_DISABLED: 'TRUE' })).toEqual({ ...none, disabled: true });
    expect(authFromSettings({ AUTHENTICATION_DISABLED: 'false' })).toEqual(none);
    expect(authFromSettings({ JWT_AUDIENCE: 'locks' })).toEqual(none);
    expect(authFromSettings({})).toEqual(none);
  });

  it('what makes no sense is refused', () => {
    expect(() => authFromSettings({ AUTHENTICATION_DISABLED: 'yes' })).toThrow(/true or false/);
    expect(() => authFromSettings({ AUTHENTICATION_DISABLED: 'true' }, { keys: 'keys.json' })).toThrow(
      /remove one/,
    );
    expect(() => authFromSettings({ JWT_ISSUER: 'https://id.example', JWT_AUDIENCE: 'a,' })).toThrow(
      /audience/,
    );
    expect(() => createAuth({ jwt: { issuer: null, audience: 'a' } })).toThrow(/issuer/);
  });
});
