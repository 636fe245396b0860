/** Renewals, releases and evictions: late, repeated or out of order, they change nothing. */
import assert from 'node:assert/strict';
import {
  type CaseDefinition,
  claimOf,
  releaseOf,
  renewOf,
  send,
  sendExpecting,
  sendTogether,
} from './case-context.js';

export const renewReleaseEvict: readonly CaseDefinition[] = [
  {
    name: 'F24: three renewals and then a release',
    async try({ store, name, newHold, past }) {
      const hold = newHold();
      await sendExpecting(store, claimOf(name, hold, { ttlMs: 5_000 }), 'granted');
      for (let round = 0; round < 3; round++) {
        await past(5);
        const renewed = await sendExpecting(store, renewOf(name, hold, { ttlMs: 5_000 }), 'renewed');
        assert.ok(renewed.expiresAt >= renewed.now + 5_000, 'a renewal did not extend');
        assert.equal(renewed.block, null, 'a block came unasked');
      }
      assert.equal((await sendExpecting(store, releaseOf(name, hold), 'released')).held, true);
      await sendExpecting(store, claimOf(name, newHold()), 'granted');
    },
  },
  {
    name: 'F28: a late renewal never moves the expiry back',
    async try({ store, name, newHold }) {
      const hold = newHold();
      await sendExpecting(store, claimOf(name, hold, { ttlMs: 5_000 }), 'granted');
      const long = await sendExpecting(store, renewOf(name, hold, { ttlMs: 60_000 }), 'renewed');
      const short = await sendExpecting(store, renewOf(name, hold, { ttlMs: 5_000 }), 'renewed');
      assert.equal(short.expiresAt, long.expiresAt);
      assert.equal((await store.read(name))?.holders[0]?.expiresAt, long.expiresAt);
    },
  },
  {
    name: 'F28, P25: an addition that arrives twice adds once',
    async try({ store, name, newHold }) {
      const hold = newHold();
      const { expiresAt } = await sendExpecting(store, claimOf(name, hold), 'granted');
      const addition = renewOf(name, hold, { added: { ms: 700, expiresAt } });
      assert.equal((await sendExpecting(store, addition, 'renewed')).expiresAt, expiresAt + 700);
      assert.equal((await sendExpecting(store, addition, 'renewed')).expiresAt, expiresAt + 700);
    },
  },
  {
    name: 'F6: a renewal after the release re-creates nothing',
    async try({ store, another, name, key, newHold }) {
      const hold = newHold();
      await sendExpecting(store, claimOf(name, hold), 'granted');
      await sendExpecting(store, releaseOf(name, hold), 'released');
      await sendExpecting(await another(), renewOf(name, hold), 'lost');
      await sendExpecting(store, renewOf(key(), hold), 'lost', 'a renewal made a record');
      assert.equal(await store.read(name), null);
    },
  },
  {
    name: 'F9: nobody releases or renews what another holds',
    async try({ store, another, name, process }) {
      const [holder, otherProcess] = [process(), process()];
      await sendExpecting(store, claimOf(name, { process: holder, number: 2 }), 'granted');
      const other = await another();
      for (const hold of [
        { process: otherProcess, number: 2 },
        { process: holder, number: 1 },
        { process: holder, number: 3 },
      ]) {
        assert.equal((await sendExpecting(other, releaseOf(name, hold), 'released')).held, false);
        await sendExpecting(other, renewOf(name, hold), 'lost');
      }
      await sendExpecting(store, renewOf(name, { process: holder, number: 2 }), 'renewed');
    },
  },
  {
    name: 'F27: a withdrawal that overtakes its claim keeps the claim from being granted',
    async try({ store, another, name, process }) {
      const own = process();
      const release = releaseOf(name, { process: own, number: 4 });
      assert.equal((await sendExpecting(await another(), release, 'released')).held, false);
      await sendExpecting(store, claimOf(name, { process: own, number: 4 }), 'withdrawn');
      await sendExpecting(store, claimOf(name, { process: own, number: 3 }), 'withdrawn');
      assert.equal(await store.read(name), null, 'a withdrawn claim left something');
      await sendExpecting(store, claimOf(name, { process: own, number: 5 }), 'granted');
    },
  },
  {
    name: 'F27: a claim doubled after its release is granted to nobody and stands in no line',
    async try({ store, name, newHold }) {
      const claim = claimOf(name, newHold());
      await sendExpecting(store, claim, 'granted');
      await sendExpecting(store, releaseOf(name, claim.hold), 'released');
      await sendExpecting(store, claim, 'withdrawn');
      await sendExpecting(store, claimOf(name, newHold()), 'granted');
      await sendExpecting(store, claim, 'withdrawn');
      assert.deepEqual((await store.read(name))?.waiters, []);
    },
  },
  {
    name: 'a second release says that it held nothing',
    async try({ store, name, newHold }) {
      const hold = newHold();
      await sendExpecting(store, claimOf(name, hold), 'granted');
      assert.equal((await sendExpecting(store, releaseOf(name, hold), 'released')).held, true);
      assert.equal((await sendExpecting(store, releaseOf(name, hold), 'released')).held, false);
    },
  },
  {
    name: 'F31: a doubled evict ends nobody new',
    async try({ store, another, name, process }) {
      const [first, next] = [process(), process()];
      const granted = await sendExpecting(store, claimOf(name, { process: first, number: 1 }), 'granted');
      const evict = { kind: 'evict', key: name, upToToken: granted.token } as const;
      assert.equal((await sendExpecting(await another(), evict, 'evicted')).count, 1);
      await sendExpecting(store, renewOf(name, { process: first, number: 1 }), 'lost');
      await sendExpecting(store, claimOf(name, { process: first, number: 1 }), 'withdrawn');
      await sendExpecting(store, claimOf(name, { process: next, number: 1 }), 'granted');
      assert.equal((await sendExpecting(store, evict, 'evicted')).count, 0);
      await sendExpecting(store, renewOf(name, { process: next, number: 1 }), 'renewed');
    },
  },
  {
    name: 'a release inside minHold leaves a rest that nothing renews or revives',
    async try({ store, name, newHold, doubtMs, past }) {
      const hold = newHold();
      const next = claimOf(name, newHold(), { queue: false });
      const [granted, released, , , busy] = await sendTogether(store, [
        [claimOf(name, hold, { owner: 'rester' }), 'granted'],
        [releaseOf(name, hold, { minHoldMs: 2_000 }), 'released'],
        [renewOf(name, hold), 'lost', 'a rest was renewed'],
        [claimOf(name, hold), 'withdrawn', 'a rest was revived'],
        [next, 'busy'],
      ]);
      assert.ok(granted?.kind === 'granted' && busy?.kind === 'busy');
      assert.ok(released?.kind === 'released' && released.held);
      assert.deepEqual(
        busy.holders.map(({ owner, resting, expiresAt }) => ({ owner, resting, expiresAt })),
        [{ owner: 'rester', resting: true, expiresAt: granted.acquiredAt + 2_000 }],
      );
      const lateMs = Math.max(doubtMs, busy.doubtMs ?? 0);
      assert.ok(busy.freeInMs <= 2_000 + lateMs, `freeInMs is ${busy.freeInMs}`);
      await past(busy.freeInMs + 5);
      await sendExpecting(store, next, 'granted');
    },
  },
  {
    name: 'P3, P8: claims that race each other, a release or an expiry never leave two holders',
    async try({ store, another, name, newHold, past }) {
      const stores = [store, await another(), await another()];
      for (let round = 0; round < 30; round++) {
        const first = newHold();
        const ending = (['released', 'releasing', 'expired'] as const)[round % 3];
        const ttlMs = ending === 'expired' ? 15 : 10_000;
        await sendExpecting(store, claimOf(name, first, { queue: false, ttlMs }), 'granted');
        if (ending === 'released') await send(store, releaseOf(name, first));
        if (ending === 'expired') await past(17);
        const rivals = stores.map((through) => ({ through, hold: newHold() }));
        const claims = rivals.map(({ through, hold }) =>
          send(through, claimOf(name, hold, { queue: false })),
        );
        if (ending === 'releasing') await send(store, releaseOf(name, first));
        if (ending === 'expired') claims.push(send(store, renewOf(name, first)));
        const kinds = (await Promise.all(claims)).map((reply) => reply.kind);
        const winners = kinds.filter((kind) => kind === 'granted' || kind === 'renewed').length;
        assert.ok(winners <= 1, `${winners} holders at once: ${kinds.join(', ')}`);
        if (ending !== 'releasing') assert.equal(winners, 1, 'nobody was granted a free key');
        // The first too: its renewal may have won.
        for (const hold of [first, ...rivals.map((rival) => rival.hold)])
          await send(store, releaseOf(name, hold));
      }
    },
  },
];
