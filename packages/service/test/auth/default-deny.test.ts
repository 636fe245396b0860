import { memoryStore } from 'holdfast/memory';
import { afterEach, describe, expect, it } from 'vitest';
import { createAuth } from '../../src/auth/index.js';
import { createService, type Part } from '../../src/index.js';
import { atTheEnd, clearScene, stage } from '../scene.js';
import { bearer, keyFile } from './issuer.js';

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
    for (const options of [{ insecure: true }, { auth: createAuth({ apiKeys: path }) }]) {
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
    const { call } = await stage({ auth: createAuth({ apiKeys: path }), parts: [forgotten] });
    const { status, text } = await call('GET', '/forgotten', undefined, bearer(keys.god));
    expect([status, text.includes('secret')]).toEqual([403, false]);
  });

  it('has to be configured with something', () => {
    expect(() => createAuth({})).toThrow(/file of API keys/);
    expect(() => createAuth({ jwt: { issuer: null, audience: 'a' } })).toThrow(/issuer/);
    expect(() => createAuth({ jwt: { issuer: 'https://id.example', audience: ['a', ''] } })).toThrow(
      /audience/,
    );
  });
});
