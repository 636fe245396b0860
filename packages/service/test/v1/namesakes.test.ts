/** A key and a token of the same name are shown alike, and are not the same. */
import { afterEach, expect, it } from 'vitest';
import { createAuth } from '../../src/auth/index.js';
import { AUDIENCE, bearer, issuer, keyFile } from '../auth/issuer.js';
import { clearScene, STORES, stage } from '../scene.js';

afterEach(clearScene);

const LOCK = '/v1/own/lock/order-1';
const lease = { instanceId: 'one-instance', leaseDuration: 60 };

for (const [name, newStore] of Object.entries(STORES)) {
  it(`on ${name}: neither acquires again, renews or releases what the other holds`, async () => {
    const { url, token } = await issuer();
    const { path, keys } = await keyFile({ ann: ['lock:own'] });
    const jwt = { issuer: url, audience: AUDIENCE };
    const { call, post } = await stage({ store: newStore(), auth: createAuth({ apiKeys: path, jwt }) });
    const [byKey, byToken] = [bearer(keys.ann), bearer(await token({ sub: 'ann' }))];
    for (const [holder, other] of [
      [byKey, byToken],
      [byToken, byKey],
    ]) {
      const act = async (verb: string, as = other): Promise<number> => {
        const body = verb === 'release' ? { instanceId: lease.instanceId } : lease;
        return (await post(`${LOCK}/${verb}`, body, as)).status;
      };
      expect(await act('acquire', holder)).toBe(200);
      expect([await act('acquire'), await act('renew'), await act('release')]).toEqual([423, 423, 423]);
      expect((await call('GET', LOCK, undefined, other)).body.owner).toBe('ann');
      expect([await act('acquire', holder), await act('renew', holder)]).toEqual([200, 200]);
      expect(await act('release', holder)).toBe(200);
    }
  });
}
