/** A store that does what it is told and then does not say so. Asked again, nothing may happen twice. */
import type { Store } from 'holdfast';
import type { Command } from 'holdfast/protocol';
import { afterEach, describe, expect, it } from 'vitest';
import { clearScene, STORES } from '../scene.js';
import { begin } from './scene.js';

afterEach(clearScene);

const LOCK = 'order-1';

/** Loses the answers to the next so many commands of a kind, after they were applied. */
class Forgetful {
  readonly store: Store;
  kind: Command['kind'] = 'claim';
  left = 0;
  /** What happens at the store meanwhile. */
  meanwhile: () => Promise<unknown> = async () => undefined;

  constructor(store: Store) {
    this.store = {
      ...store,
      apply: (commands) =>
        store.apply(commands).map(async (reply, index) => {
          const answer = await reply;
          if (commands[index]?.kind !== this.kind || this.left === 0) return answer;
          this.left -= 1;
          await this.meanwhile();
          throw new Error('the connection broke');
        }),
    };
  }

  lose(kind: Command['kind'], count: number): void {
    this.kind = kind;
    this.left = count;
  }
}

for (const [name, newStore] of Object.entries(STORES)) {
  describe(`answers that are lost, on ${name}`, () => {
    for (const count of [1, 2, 3]) {
      it(`P25: a renewal whose ${count} first answers are lost adds once`, async () => {
        const forgetful = new Forgetful(newStore());
        const { acquire1, renew1, look } = await begin({ store: forgetful.store });
        const { expiry } = (await acquire1(LOCK, 'one-instance', 60)).body as { expiry: number };
        forgetful.lose('renew', count);
        expect((await renew1(LOCK, 'one-instance', 60)).body).toMatchObject({
          leaseDuration: 120,
          expiry: expiry + 60,
        });
        expect((await look(LOCK)).body.expiry).toBe(expiry + 60);
      });

      it(`an acquire whose ${count} first answers are lost is granted, and again`, async () => {
        const forgetful = new Forgetful(newStore());
        const { acquire1, look, get } = await begin({ store: forgetful.store });
        forgetful.lose('claim', count);
        const first = await acquire1(LOCK, 'one-instance', 60);
        forgetful.lose('renew', count);
        const second = await acquire1(LOCK, 'one-instance', 20);
        expect([first.status, second.status]).toEqual([200, 200]);
        expect(first.body.leaseDuration).toBe(60);
        expect(second.body.leaseDuration).toBe(20);
        expect((await look(LOCK)).body.expiry).toBe(second.body.expiry);
        expect((await get(`/v2/locks/billing/${LOCK}`)).body.holders).toHaveLength(1);
      });

      it(`a release whose ${count} first answers are lost is a success`, async () => {
        const forgetful = new Forgetful(newStore());
        const { acquire1, release1, look } = await begin({ store: forgetful.store });
        await acquire1(LOCK, 'one-instance', 60);
        forgetful.lose('release', count);
        expect((await release1(LOCK, 'one-instance')).status).toBe(200);
        expect((await look(LOCK)).body.owner).toBeUndefined();
      });
    }

    it('a release whose answer is lost is a success, though another has the lock by then', async () => {
      const store = newStore();
      const forgetful = new Forgetful(store);
      const { acquire1, release1, look } = await begin({ store: forgetful.store });
      const other = await begin({ store });
      await acquire1(LOCK, 'one-instance', 60);
      forgetful.lose('release', 1);
      forgetful.meanwhile = () => other.acquire1(LOCK, 'another', 30);
      expect((await release1(LOCK, 'one-instance')).status).toBe(200);
      expect((await look(LOCK)).body.owner).toBe('anonymous');
      expect((await other.renew1(LOCK, 'another', 30)).body).toMatchObject({ leaseDuration: 60 });
    });

    it('P25: a renewal whose answer is lost, and on which another went on, is neither repeated nor denied', async () => {
      const store = newStore();
      const forgetful = new Forgetful(store);
      const { acquire1, renew1, look } = await begin({ store: forgetful.store });
      const other = await begin({ store });
      const { expiry } = (await acquire1(LOCK, 'one-instance', 60)).body as { expiry: number };
      forgetful.lose('renew', 1);
      forgetful.meanwhile = () => other.renew1(LOCK, 'one-instance', 60);
      expect((await renew1(LOCK, 'one-instance', 60)).status).toBe(500);
      expect((await look(LOCK)).body.expiry).toBe(expiry + 120);
    });

    it('a release by another instance is refused though answers are lost', async () => {
      const forgetful = new Forgetful(newStore());
      const { acquire1, release1, look } = await begin({ store: forgetful.store });
      await acquire1(LOCK, 'one-instance', 60);
      forgetful.lose('release', 2);
      expect((await release1(LOCK, 'another')).status).toBe(423);
      expect((await look(LOCK)).body.owner).toBe('anonymous');
    });
  });
}
