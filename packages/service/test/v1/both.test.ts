/** Both APIs are the same locks. */
import { afterEach, describe, expect, it } from 'vitest';
import { clearScene, listen, open, STORES, until } from '../scene.js';
import { begin } from './scene.js';

afterEach(clearScene);

const LOCK = 'order-1';
const V2 = `/v2/locks/billing/${LOCK}`;

for (const [name, newStore] of Object.entries(STORES)) {
  describe(`both APIs on ${name}`, () => {
    it('what /v2 holds is another’s here: 423, and GET shows owner and expiry', async () => {
      const { acquire, acquire1, renew1, release1, look, post } = await begin({ store: newStore() });
      const { hold, expiresAt } = await acquire(`billing/${LOCK}`, { ttl: '60s', owner: 'ada' });
      for (const answer of [
        await acquire1(LOCK, 'one-instance', 60),
        await renew1(LOCK, 'one-instance', 60),
        await release1(LOCK, 'one-instance'),
      ]) {
        expect([answer.status, answer.body]).toEqual([
          423,
          { success: false, namespace: 'billing', lockName: LOCK },
        ]);
      }
      const expiry = Math.ceil(expiresAt / 1_000) - 1;
      expect((await look(LOCK)).body).toEqual({ namespace: 'billing', lockName: LOCK, owner: 'ada', expiry });
      await post(`${V2}/release`, { hold });
      expect((await acquire1(LOCK, 'one-instance', 60)).status).toBe(200);
    });

    it('what is held here is seen by /v2, to the end of its last second', async () => {
      const { acquire1, renew1, release1, get, post } = await begin({ store: newStore() });
      const first = await acquire1(LOCK, 'one-instance', 60);
      const ends = ({ body }: { body: Record<string, unknown> }): number =>
        ((body.expiry as number) + 1) * 1_000;
      const seen = async (): Promise<unknown> => (await get(V2)).body.holders;
      expect(await seen()).toMatchObject([
        { owner: 'anonymous', expiresAt: ends(first), permits: 1, capacity: 1, resting: false },
      ]);
      const busy = await post(`${V2}/acquire`, { ttl: '30s' });
      expect([busy.status, busy.body.code]).toEqual([423, 'busy']);
      const renewed = await renew1(LOCK, 'one-instance', 7);
      expect(await seen()).toMatchObject([{ expiresAt: ends(renewed) }]);
      const again = await acquire1(LOCK, 'one-instance', 5);
      expect(await seen()).toMatchObject([{ expiresAt: ends(again) }]);
      await release1(LOCK, 'one-instance');
      expect((await post(`${V2}/acquire`, { ttl: '30s' })).status).toBe(200);
    });

    it('readers and semaphores of /v2 keep this contract out, and GET shows who lasts longest', async () => {
      const { acquire, acquire1, look } = await begin({ store: newStore() });
      await acquire(`billing/${LOCK}`, { mode: 'read', ttl: '20s', owner: 'ada' });
      const { expiresAt } = await acquire(`billing/${LOCK}`, { mode: 'read', ttl: '60s', owner: 'bob' });
      expect((await acquire1(LOCK, 'one-instance', 60)).status).toBe(423);
      const expiry = Math.ceil(expiresAt / 1_000) - 1;
      expect((await look(LOCK)).body).toMatchObject({ owner: 'bob', expiry });
    });

    it('whoever waits at /v2 gets what is released here', async () => {
      const { acquire1, release1, get, url } = await begin({ store: newStore() });
      await acquire1(LOCK, 'one-instance', 60);
      const waiter = open(url, `${V2}/acquire`, { ttl: '30s', wait: '20s' });
      await until(async () => (await get(V2)).body.waiting === 1, 'it waits');
      await release1(LOCK, 'one-instance');
      expect((await waiter.answer).status).toBe(200);
    });

    it('an eviction ends what is held here', async () => {
      const { acquire1, renew1, post, look } = await begin({ store: newStore() });
      await acquire1(LOCK, 'one-instance', 60);
      expect((await post(`${V2}/evict`)).body.evicted).toBe(1);
      expect((await look(LOCK)).body.owner).toBeUndefined();
      expect((await renew1(LOCK, 'one-instance', 60)).status).toBe(423);
      expect((await acquire1(LOCK, 'one-instance', 60)).status).toBe(200);
    });

    it('an instance is shown nowhere, and its hold works nowhere else', async () => {
      const scene = await begin({ store: newStore() });
      const { acquire1, renew1, release1, look, get, post, url, lines } = scene;
      const instance = 'SecretInstance-1';
      const events = await listen(url, '/v2/events');
      await until(() => events.events.some(({ event }) => event === 'ready'), 'it is ready');
      const holds: string[] = [];
      const { apply } = scene.store;
      scene.store.apply = (commands) => {
        for (const command of commands) if ('hold' in command) holds.push(command.hold.process);
        return apply.call(scene.store, commands);
      };
      await acquire1(LOCK, instance, 60);
      await renew1(LOCK, instance, 60);
      await acquire1(LOCK, instance, 30);
      const seen = [
        await look(LOCK),
        await get(V2),
        await get('/v2/locks?metadata=text'),
        await post(`${V2}/acquire`, { ttl: '1s' }),
        await acquire1(LOCK, 'another', 60),
      ].map(({ text }) => text);
      await until(() => events.text().includes('"owner":"anonymous"'), 'the event came');
      seen.push(events.text(), lines.join(''));
      const [hold = ''] = holds;
      expect(hold).toMatch(/^v1:/);
      for (const text of seen) {
        expect(text).not.toContain(instance);
        for (const secret of holds) expect(text).not.toContain(secret.slice(3));
      }
      // Not even with the hold itself, should anybody get to know it.
      for (const verb of ['renew', 'release']) {
        expect((await post(`${V2}/${verb}`, { hold: `${hold}.1`, ttl: '1s' })).status).toBe(400);
      }
      expect((await release1(LOCK, instance)).status).toBe(200);
    });

    it('metadata that somebody copies makes them nobody else', async () => {
      const { acquire1, renew1, release1, acquire, get, post } = await begin({ store: newStore() });
      await acquire1(LOCK, 'one-instance', 60);
      const [holder] = (await get(V2)).body.holders as { metadata: object }[];
      await release1(LOCK, 'one-instance');
      const { hold } = await acquire(`billing/${LOCK}`, { owner: 'anonymous', metadata: holder?.metadata });
      expect((await acquire1(LOCK, 'one-instance', 60)).status).toBe(423);
      expect((await renew1(LOCK, 'one-instance', 60)).status).toBe(423);
      expect((await release1(LOCK, 'one-instance')).status).toBe(423);
      await post(`${V2}/release`, { hold });
      expect((await acquire1(LOCK, 'one-instance', 60)).status).toBe(200);
    });
  });
}
