/** Evictions: of whom they end the hold, and what the evicted learns with its next renewal. */
import assert from 'node:assert/strict';
import { EVICTIONS_MAX, type HoldId, type Reply, TOKEN_BLOCK } from '../../protocol/index.js';
import {
  type CaseContext,
  type CaseDefinition,
  claimOf,
  expectKind,
  releaseOf,
  renewExpired,
  renewOf,
  sendExpecting,
  sendTogether,
} from './case-context.js';

const REASON = 'the host "näme" is retired: it\'s too old';

export const evictions: readonly CaseDefinition[] = [
  {
    name: 'F31: an evict of one token ends one holder of a semaphore, and nobody else, however often it is sent',
    shared: true,
    async try(context) {
      const { store, name } = context;
      const other = await context.another();
      const holds = [context.newHold(), context.newHold(), context.newHold()] as const;
      const tokens = await grantedBeside(context, holds);
      const [, token = 0] = tokens;
      const evict = { kind: 'evict', key: name, fromToken: token, upToToken: token, reason: REASON } as const;
      assert.equal((await sendExpecting(other, evict, 'evicted')).count, 1);
      assert.deepEqual(
        (await store.read(name))?.holders.map((holder) => holder.token),
        [tokens[0], tokens[2]],
      );
      await sendExpecting(store, renewOf(name, holds[0]), 'renewed');
      await sendExpecting(store, renewOf(name, holds[1]), 'lost');
      await sendExpecting(store, renewOf(name, holds[2]), 'renewed');
      const next = context.newHold();
      await sendExpecting(store, claimOf(name, next, { capacity: 3 }), 'granted');
      assert.equal((await sendExpecting(other, evict, 'evicted')).count, 0);
      for (const hold of [holds[0], holds[2], next])
        await sendExpecting(store, renewOf(name, hold), 'renewed');
    },
  },
  {
    name: 'an exclusive hold is evicted by any token that was reserved for it, and by none before or after',
    async try({ store, name, newHold }) {
      const [before, hold] = [newHold(), newHold()];
      const earlier = await sendExpecting(store, claimOf(name, before), 'granted');
      await sendExpecting(store, releaseOf(name, before), 'released');
      const { token, tokenLast } = await sendExpecting(store, claimOf(name, hold), 'granted');
      const { block } = await sendExpecting(store, renewOf(name, hold, { block: true }), 'renewed');
      assert.ok(block, 'a renewal that asked for a block got none');
      const evictOf = (one: number) =>
        ({ kind: 'evict', key: name, fromToken: one, upToToken: one, reason: null }) as const;
      for (const foreign of [earlier.token, earlier.tokenLast, block.tokenLast + 1]) {
        assert.equal((await sendExpecting(store, evictOf(foreign), 'evicted')).count, 0);
      }
      assert.equal((await sendExpecting(store, evictOf(block.tokenLast), 'evicted')).count, 1);
      const again = newHold();
      const next = await sendExpecting(store, claimOf(name, again), 'granted');
      assert.equal(next.tokenLast - next.token, TOKEN_BLOCK - 1);
      for (const old of [token, tokenLast, block.token]) {
        assert.equal((await sendExpecting(store, evictOf(old), 'evicted')).count, 0);
      }
      await sendExpecting(store, renewOf(name, again), 'renewed');
    },
  },
  {
    name: 'an evicted hold learns the reason with its renewal, however often it asks and whoever holds meanwhile',
    shared: true,
    async try(context) {
      const { store, name } = context;
      const other = await context.another();
      const holds = [context.newHold(), context.newHold(), context.newHold()] as const;
      await grantedBeside(context, holds);
      await sendExpecting(store, releaseOf(name, holds[2]), 'released');
      const all = { kind: 'evict', key: name, upToToken: Number.MAX_SAFE_INTEGER } as const;
      assert.equal((await sendExpecting(other, { ...all, reason: REASON }, 'evicted')).count, 2);
      const next = context.newHold();
      await sendExpecting(other, claimOf(name, next), 'granted');
      for (const through of [store, other, store]) {
        const lost = await sendExpecting(through, renewOf(name, holds[0]), 'lost');
        assert.deepEqual(lost.evicted, { reason: REASON });
      }
      const second = await sendExpecting(store, renewOf(name, holds[1]), 'lost');
      assert.deepEqual(second.evicted, { reason: REASON });
      const released = await sendExpecting(store, renewOf(name, holds[2]), 'lost');
      assert.equal(released.evicted, undefined, 'a released hold was told that it had been evicted');
      await sendExpecting(other, renewOf(name, next), 'renewed');
      assert.equal((await sendExpecting(other, all, 'evicted')).count, 1);
      const silent = await sendExpecting(store, renewOf(name, next), 'lost');
      assert.deepEqual(silent.evicted, { reason: null });
      const stays = await sendExpecting(store, renewOf(name, holds[0]), 'lost');
      assert.deepEqual(stays.evicted, { reason: REASON });
    },
  },
  {
    name: 'where more are evicted at once than are remembered, all are lost and the last of them learn the reason',
    shared: true,
    async try({ store, name, newHold }) {
      const capacity = EVICTIONS_MAX + 2;
      const holds = Array.from({ length: capacity }, newHold);
      await sendTogether(
        store,
        holds.map((hold) => [claimOf(name, hold, { capacity }), 'granted'] as const),
      );
      const all = { kind: 'evict', key: name, upToToken: Number.MAX_SAFE_INTEGER, reason: REASON } as const;
      assert.equal((await sendExpecting(store, all, 'evicted')).count, capacity);
      const replies = await sendTogether(
        store,
        holds.map((hold) => [renewOf(name, hold), 'lost'] as const),
      );
      assert.deepEqual(
        replies.map((reply) => expectKind(reply, 'lost').evicted?.reason),
        holds.map((_, index) => (index < capacity - EVICTIONS_MAX ? undefined : REASON)),
      );
    },
  },
  {
    name: 'an evicted hold whose time is over is lost like any other',
    shared: true,
    async try({ store, name, newHold, past }) {
      const [short, long] = [newHold(), newHold()];
      await sendTogether(store, [
        [claimOf(name, short, { capacity: 2, ttlMs: 400 }), 'granted'],
        [claimOf(name, long, { capacity: 2 }), 'granted'],
        [{ kind: 'evict', key: name, upToToken: Number.MAX_SAFE_INTEGER, reason: REASON }, 'evicted'],
      ]);
      await past(405);
      assert.equal((await renewExpired(store, renewOf(name, short))).evicted, undefined);
      assert.deepEqual((await sendExpecting(store, renewOf(name, long), 'lost')).evicted, { reason: REASON });
    },
  },
];

/** The tokens of three holders of one permit each. */
async function grantedBeside({ store, name }: CaseContext, holds: readonly HoldId[]): Promise<number[]> {
  const replies = await sendTogether(
    store,
    holds.map((hold) => [claimOf(name, hold, { capacity: 3 }), 'granted'] as const),
  );
  return replies.map((reply: Reply) => expectKind(reply, 'granted').token);
}
