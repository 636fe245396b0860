import { sqliteStore } from 'holdfast/sqlite';
import { afterEach, describe, expect, it } from 'vitest';
import { configFrom } from '../../src/config/index.js';
import { serve } from '../../src/serve.js';
import { createService } from '../../src/service.js';
import { AUDIENCE, bearer, issuer, keyFile } from '../auth/issuer.js';
import { atTheEnd, clearScene, freshFile } from '../scene.js';

afterEach(clearScene);

type Sources = Omit<Parameters<typeof configFrom>[0], 'defaultStore'>;

/** Runs what is configured; tells the status of an acquire. */
async function served(
  sources: Sources,
): Promise<(namespace: string, credential?: string) => Promise<number>> {
  const flags = { port: '0', 'log-level': 'silent', ...sources.flags };
  const running = await serve(configFrom({ ...sources, flags, defaultStore: () => 'memory:' }));
  atTheEnd(() => running.close());
  return async (namespace, credential) => {
    const { status } = await fetch(`${running.url}/v2/locks/${namespace}/${Math.random()}/acquire`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(credential && bearer(credential)) },
      body: '{"ttl": "30s"}',
    });
    return status;
  };
}

describe('a store that frees the locks of a dead process', () => {
  const refusal = /frees the locks of a process that has died.*`liveness: false`/;

  it('is refused: the death of the service would free those of its clients', async () => {
    const store = sqliteStore(freshFile());
    atTheEnd(() => store.close());
    expect(() => createService({ store })).toThrow(refusal);
    const quiet = sqliteStore(freshFile(), { liveness: false });
    atTheEnd(() => quiet.close());
    expect(() => createService({ store: quiet })).not.toThrow();
  });

  it('is refused by its URL, too; without options the service sees to it', async () => {
    const file = freshFile();
    await expect(served({ flags: { store: `sqlite:${file}?liveness=on` } })).rejects.toThrow(refusal);
    const acquire = await served({ flags: { store: `sqlite:${file}` } });
    expect(await acquire('own')).toBe(200);
  });
});

describe('what is configured is what runs', () => {
  it('tokens: without rights of their own they have those of the configuration', async () => {
    const { url, token } = await issuer();
    const unsaid = await token({ holdfast: undefined });
    const flags = { 'jwt-issuer': url, 'jwt-audience': AUDIENCE };
    const plain = await served({ flags });
    expect([await plain('own'), await plain('own', unsaid)]).toEqual([401, 403]);
    expect([await plain('own', await token()), await plain('other', await token())]).toEqual([200, 403]);
    const narrow = await served({ flags: { ...flags, 'jwt-rights': 'lock:shop' } });
    expect([await narrow('shop', unsaid), await narrow('own', unsaid)]).toEqual([200, 403]);
    const none = await served({ flags: { ...flags, 'jwt-rights': 'none' } });
    expect([await none('shop', unsaid), await none('own', await token())]).toEqual([403, 200]);
  });

  it('the variables of LockServiceCentral ask for tokens as it does, whatever is disabled besides', async () => {
    const { url, token } = await issuer();
    const unsaid = await token({ aud: 'anything', holdfast: undefined });
    for (const tokens of [{ JWT_ISSUER: url }, { JWT_JWKS: `${url}/jwks` }]) {
      const acquire = await served({ environment: { ...tokens, AUTHENTICATION_DISABLED: 'true' } });
      expect([await acquire('own'), await acquire('own', unsaid)]).toEqual([401, 200]);
      expect(await acquire('own', await token({ exp: 1 }))).toBe(401);
    }
  });

  it('several may be whom tokens are made for', async () => {
    const { url, token } = await issuer();
    const acquire = await served({ flags: { 'jwt-issuer': url, 'jwt-audience': `shop, ${AUDIENCE}` } });
    expect(await acquire('own', await token())).toBe(200);
    expect(await acquire('own', await token({ aud: 'other' }))).toBe(401);
  });

  it('keys and tokens together', async () => {
    const { url, token } = await issuer();
    const { path, keys } = await keyFile({ shop: ['lock:shop'] });
    const flags = { 'api-keys': path, 'jwt-issuer': url, 'jwt-audience': AUDIENCE };
    const acquire = await served({ flags });
    expect([await acquire('shop', keys.shop), await acquire('own', await token())]).toEqual([200, 200]);
    expect(await acquire('own', keys.shop)).toBe(403);
  });

  it('limits, of all and of each', async () => {
    const { path, keys } = await keyFile({ shop: ['lock:shop'] });
    const file = JSON.stringify({ 'api-keys': path, principalLimits: { held: 2 } });
    const acquire = await served({ file });
    const statuses = [await acquire('shop', keys.shop), await acquire('shop', keys.shop)];
    expect([...statuses, await acquire('shop', keys.shop)]).toEqual([200, 200, 429]);
    const short = await served({ file: JSON.stringify({ limits: { ttlMsMax: 1_000 } }) });
    expect(await short('shop')).toBe(400);
  });

  it('a store on which nothing can be opened leaves nothing open', async () => {
    await expect(served({ flags: { store: 'nothing:' } })).rejects.toThrow(/no store for "nothing:"/);
  });
});
