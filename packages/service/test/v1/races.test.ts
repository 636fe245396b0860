/** What happens at once. Whoever comes first, it has to look as if they had come one after the other. */
import type { Store } from 'holdfast';
import { afterEach, describe, expect, it } from 'vitest';
import { type Answer, clearScene, open, pause, STORES, until } from '../scene.js';
import { begin, type Scene } from './scene.js';

afterEach(clearScene);

const ROUNDS = 5;
const LOCK = 'order-1';
const TEN = Array.from({ length: 10 }, (_, at) => `instance-${at}`);

/** Every look and every answer takes a while. */
function farAway(store: Store): Store {
  return {
    ...store,
    apply: (commands) => {
      const replies = store.apply(commands);
      return replies.map((reply) => pause(3).then(() => reply));
    },
    read: (key) => store.read(key).then((found) => pause(3).then(() => found)),
  };
}

const statuses = (answers: readonly Answer[]): number[] => answers.map(({ status }) => status);
const winners = (answers: readonly Answer[]): Answer[] => answers.filter(({ status }) => status === 200);

for (const [name, newStore] of Object.entries(STORES)) {
  /** Two services on one store. */
  const pair = async (): Promise<[Scene, Scene]> => {
    const store = newStore();
    return [await begin({ store }), await begin({ store })];
  };

  describe(`races on ${name}`, () => {
    it('ten instances acquire at once: one gets it', async () => {
      const [one, two] = await pair();
      for (let round = 0; round < ROUNDS; round += 1) {
        const lock = `order-${round}`;
        const answers = await Promise.all(
          TEN.map((instance, at) => (at % 2 ? one : two).acquire1(lock, instance, 60)),
        );
        expect(winners(answers)).toHaveLength(1);
        const { owner, expiry } = winners(answers)[0]?.body ?? {};
        expect((await one.look(lock)).body).toMatchObject({ owner, expiry });
      }
    });

    it('the same identity acquires ten times at once: all succeed, and one of the leases counts', async () => {
      const [one, two] = await pair();
      for (let round = 0; round < ROUNDS; round += 1) {
        const lock = `order-${round}`;
        const answers = await Promise.all(
          TEN.map((_, at) => (at % 2 ? one : two).acquire1(lock, 'same-instance', 100 * (at + 1))),
        );
        expect(statuses(answers)).toEqual(TEN.map(() => 200));
        expect(answers.map(({ body }) => body.expiry)).toContain((await one.look(lock)).body.expiry);
        expect((await one.get(`/v2/locks/billing/${lock}`)).body.holders).toHaveLength(1);
      }
    });

    it('ten renewals at once add ten times, each once, and each says what it made of it', async () => {
      // So that all of them see the same expiry before any has added to it.
      const one = await begin({ store: farAway(newStore()) });
      for (let round = 0; round < ROUNDS; round += 1) {
        const lock = `order-${round}`;
        const { expiry } = (await one.acquire1(lock, 'same-instance', 60)).body as { expiry: number };
        const answers = await Promise.all(TEN.map(() => one.renew1(lock, 'same-instance', 60)));
        expect(statuses(answers)).toEqual(TEN.map(() => 200));
        const leases = answers.map(({ body }) => body.leaseDuration as number).sort((a, b) => a - b);
        expect(leases).toEqual(TEN.map((_, at) => 60 * (at + 2)));
        expect((await one.look(lock)).body.expiry).toBe(expiry + 600);
      }
    });

    it('two renewals at once through two services add twice', async () => {
      const [one, two] = await pair();
      let sum = 0;
      const { expiry } = (await one.acquire1(LOCK, 'same-instance', 60)).body as { expiry: number };
      for (let round = 1; round <= ROUNDS; round += 1) {
        const answers = await Promise.all([
          one.renew1(LOCK, 'same-instance', 10 + round),
          two.renew1(LOCK, 'same-instance', 20 + round),
        ]);
        expect(statuses(answers)).toEqual([200, 200]);
        sum += 30 + 2 * round;
        expect((await one.look(LOCK)).body.expiry).toBe(expiry + sum);
      }
    });

    it('a renewal and a release at once: the lock is free, and never held for longer', async () => {
      const [one, two] = await pair();
      for (let round = 0; round < ROUNDS; round += 1) {
        await one.acquire1(LOCK, 'same-instance', 60);
        const [renewed, released] = await Promise.all([
          one.renew1(LOCK, 'same-instance', 60),
          two.release1(LOCK, 'same-instance'),
        ]);
        expect([200, 423]).toContain(renewed.status);
        expect(released.status).toBe(200);
        expect((await one.look(LOCK)).body).toEqual({ namespace: 'billing', lockName: LOCK });
      }
    });

    it('a release and an acquire by another at once: the other has it, or it is free', async () => {
      const [one, two] = await pair();
      for (let round = 0; round < ROUNDS; round += 1) {
        const lock = `order-${round}`;
        await one.acquire1(lock, 'first', 60);
        const [released, acquired] = await Promise.all([
          one.release1(lock, 'first'),
          two.acquire1(lock, 'second', 30),
        ]);
        expect(released.status).toBe(200);
        const { body } = await one.look(lock);
        expect(body.expiry).toBe(acquired.status === 200 ? acquired.body.expiry : undefined);
        expect((await one.renew1(lock, 'first', 60)).status).toBe(423);
      }
    });

    it('a release and an acquire of the same identity at once both succeed', async () => {
      const [one, two] = await pair();
      for (let round = 0; round < ROUNDS; round += 1) {
        const lock = `order-${round}`;
        await one.acquire1(lock, 'same-instance', 60);
        const [released, acquired] = await Promise.all([
          one.release1(lock, 'same-instance'),
          two.acquire1(lock, 'same-instance', 30),
        ]);
        expect([released.status, acquired.status]).toEqual([200, 200]);
        expect([undefined, acquired.body.expiry]).toContain((await one.look(lock)).body.expiry);
      }
    });

    it('ten releases at once all succeed', async () => {
      const [one, two] = await pair();
      await one.acquire1(LOCK, 'same-instance', 60);
      const answers = await Promise.all(
        TEN.map((_, at) => (at % 2 ? one : two).release1(LOCK, 'same-instance')),
      );
      expect(statuses(answers)).toEqual(TEN.map(() => 200));
      expect((await one.acquire1(LOCK, 'other', 60)).status).toBe(200);
    });

    it('acquires around the expiry: one gets it, and not before the last second is over', async () => {
      const [one, two] = await pair();
      const { expiry } = (await one.acquire1(LOCK, 'first', 1)).body as { expiry: number };
      const won: Answer[] = [];
      await until(async () => {
        const answers = await Promise.all(
          TEN.map((instance, at) => (at % 2 ? one : two).acquire1(LOCK, instance, 60)),
        );
        won.push(...winners(answers));
        return won.length > 0;
      }, 'somebody has it');
      expect(won).toHaveLength(1);
      expect((won[0]?.body.expiry as number) - 60).toBeGreaterThan(expiry);
      expect((await one.renew1(LOCK, 'first', 60)).status).toBe(423);
    });

    it('a renewal around the expiry holds on, or has lost it to the other: never both', async () => {
      const [one, two] = await pair();
      const race = async (offMs: number): Promise<void> => {
        const lock = `order${offMs}`;
        const { expiry } = (await one.acquire1(lock, 'first', 1)).body as { expiry: number };
        const { now } = await one.store.probe();
        await one.pass((expiry + 1) * 1_000 - now + offMs);
        const answers = await Promise.all([one.renew1(lock, 'first', 60), two.acquire1(lock, 'second', 60)]);
        expect(winners(answers).length).toBeLessThanOrEqual(1);
        const { body } = await one.look(lock);
        expect(body.expiry).toBe(winners(answers)[0]?.body.expiry);
      };
      await Promise.all([-20, 0, 20].map(race));
    });

    it('an acquire of this contract and one of /v2 at once: one gets it', async () => {
      const [one, two] = await pair();
      for (let round = 0; round < ROUNDS; round += 1) {
        const answers = await Promise.all([
          one.acquire1(`order-${round}`, 'first', 60),
          two.post(`/v2/locks/billing/order-${round}/acquire`, { ttl: '60s' }),
        ]);
        expect(statuses(answers).sort()).toEqual([200, 423]);
      }
    });

    it('an eviction and a renewal at once: the lock is free', async () => {
      const [one, two] = await pair();
      for (let round = 0; round < ROUNDS; round += 1) {
        await one.acquire1(LOCK, 'first', 60);
        const [renewed] = await Promise.all([
          one.renew1(LOCK, 'first', 60),
          two.post(`/v2/locks/billing/${LOCK}/evict`),
        ]);
        expect([200, 423]).toContain(renewed.status);
        expect((await one.look(LOCK)).body.owner).toBeUndefined();
      }
    });

    it('whoever acquires again keeps the lock, though others wait in the queue for it', async () => {
      const scene = await begin({ store: newStore() });
      const { acquire1, renew1, release1, get, url } = scene;
      await acquire1(LOCK, 'first', 60);
      const waiter = open(url, `/v2/locks/billing/${LOCK}/acquire`, { ttl: '30s', wait: '20s' });
      await until(async () => (await get(`/v2/locks/billing/${LOCK}`)).body.waiting === 1, 'it waits');
      for (const seconds of [60, 90, 30, 10, 45]) {
        expect((await acquire1(LOCK, 'first', seconds)).body).toMatchObject({ leaseDuration: seconds });
      }
      expect((await renew1(LOCK, 'first', 5)).body.leaseDuration).toBe(50);
      expect((await acquire1(LOCK, 'second', 60)).status).toBe(423);
      expect((await release1(LOCK, 'first')).status).toBe(200);
      expect((await waiter.answer).status).toBe(200);
      expect((await acquire1(LOCK, 'first', 60)).status).toBe(423);
    });
  });
}
