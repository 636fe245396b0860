import { afterAll, describe, expect, it } from 'vitest';
import { clearScene } from '../scene.js';
import { bearer, begin, byName, WHERE } from './scene.js';
import { follow, isForRealTime, NAMES, TABLE } from './table.js';

// Not after each: they run side by side.
afterAll(clearScene);

for (const [name, where] of Object.entries(WHERE)) {
  const isExact = name.includes('clock of its own');
  describe(`the contract on ${name}`, () => {
    for (const [sentence, steps] of Object.entries(TABLE)) {
      if (!isExact && !isForRealTime(steps)) continue;
      it.concurrent(sentence, async () => {
        await follow(await begin(where()), steps, isExact);
      });
    }

    it('the owner is who signed in: an instance of another owner is another', async () => {
      const scene = await begin({ ...where(), auth: byName });
      const { call } = scene;
      const path = '/v1/billing/lock/order-1';
      const body = { instanceId: 'same-instance', leaseDuration: 60 };
      const ada = await call('POST', `${path}/acquire`, body, bearer('ada'));
      expect(ada.body).toMatchObject({ success: true, owner: 'ada', instanceId: 'same-instance' });
      for (const verb of ['acquire', 'renew']) {
        expect((await call('POST', `${path}/${verb}`, body, bearer('bob'))).status).toBe(423);
      }
      const release = { instanceId: 'same-instance' };
      expect((await call('POST', `${path}/release`, release, bearer('bob'))).status).toBe(423);
      const { expiry } = ada.body;
      expect((await call('GET', path, undefined, bearer('bob'))).body).toEqual({
        ...NAMES,
        owner: 'ada',
        expiry,
      });
      expect((await call('POST', `${path}/release`, release, bearer('ada'))).status).toBe(200);
    });

    it('locks of different names and namespaces have nothing to do with each other', async () => {
      const { post } = await begin(where());
      const body = { instanceId: 'one', leaseDuration: 60 };
      for (const path of ['aaa/lock/bbb', 'aaa/lock/ccc', 'aaa-bbb/lock/ccc', 'AAA/lock/bbb']) {
        expect((await post(`/v1/${path}/acquire`, body)).status).toBe(200);
      }
    });

    it('answers are JSON, in the order that clients know, and kept by nobody', async () => {
      const { acquire1 } = await begin(where());
      const { headers, text } = await acquire1('order-1', 'one', 60);
      expect(headers.get('content-type')).toMatch(/^application\/json/);
      expect(headers.get('cache-control')).toBe('no-store');
      expect([...text.matchAll(/"(\w+)":/g)].map(([, member]) => member)).toEqual([
        'success',
        'namespace',
        'lockName',
        'owner',
        'instanceId',
        'leaseDuration',
        'expiry',
      ]);
    });
  });
}
