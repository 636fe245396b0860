/** Claims: granted once, to one holder; the same reply to a repeated claim; never granted to an ended hold. */
import assert from 'node:assert/strict';
import { HOLDERS_SHOWN, MARKS_MAX, TOKEN_BLOCK } from '../../protocol/index.js';
import {
  type CaseDefinition,
  claimExpired,
  claimOf,
  expectKind,
  releaseOf,
  renewOf,
  sendAll,
  sendExpecting,
  sendTogether,
} from './case-context.js';

export const claims: readonly CaseDefinition[] = [
  {
    name: 'a free key is granted, and the next claimant is told who holds it and for how long',
    async try({ store, another, name, newHold, doubtMs }) {
      const holder = newHold();
      const granted = await sendExpecting(
        store,
        claimOf(name, holder, { owner: 'first', metadata: '{"job":7}', ttlMs: 60_000 }),
        'granted',
      );
      assert.equal(granted.acquiredAt, granted.now);
      assert.equal(granted.expiresAt, granted.now + 60_000);
      assert.equal(granted.tokenLast, granted.token + TOKEN_BLOCK - 1, 'an exclusive hold reserves a block');
      assert.equal(granted.othersWait, false);
      const busy = await sendExpecting(await another(), claimOf(name, newHold()), 'busy');
      assert.equal(busy.position, store.traits.queue ? 0 : null);
      // The expiry counts from the latest time possible by one estimate, and is compared with the earliest by another.
      const lateMs = Math.max(doubtMs, (granted.doubtMs ?? 0) + (busy.doubtMs ?? 0));
      assert.ok(busy.freeInMs > 0 && busy.freeInMs <= 60_000 + lateMs, `freeInMs is ${busy.freeInMs}`);
      const { token, acquiredAt, expiresAt } = granted;
      const shared = { owner: 'first', permits: 1, capacity: 1, metadata: '{"job":7}', resting: false };
      assert.deepEqual(busy.holders, [{ ...shared, token, acquiredAt, expiresAt }]);
      const again = await sendExpecting(store, renewOf(name, holder), 'renewed');
      assert.equal(again.othersWait, store.traits.queue, 'the holder is not told that others wait');
    },
  },
  {
    name: 'F4: the same claim again is the same grant, with the same token and expiry',
    async try({ store, another, key, newHold }) {
      const claim = claimOf(key(), newHold());
      const first = await sendExpecting(store, claim, 'granted');
      const second = await sendExpecting(await another(), claim, 'granted');
      const { now: _first, doubtMs: _doubt, ...before } = first;
      const { now: _second, doubtMs: _doubted, ...after } = second;
      assert.deepEqual(after, before);
    },
  },
  {
    name: 'F10: tokens rise with every grant, however fast they follow, and blocks never overlap',
    async try({ store, another, name, process }) {
      const stores = [store, await another()];
      let last = 0;
      for (let number = 1; number <= 40; number++) {
        const hold = { process: process(), number };
        const through = stores[number % 2] ?? store;
        const granted = await sendExpecting(through, claimOf(name, hold), 'granted');
        assert.ok(granted.token > last, `token ${granted.token} after ${last}`);
        last = granted.tokenLast;
        if (number % 5 === 0) {
          const { block } = await sendExpecting(through, renewOf(name, hold, { block: true }), 'renewed');
          assert.ok(block && block.token > last, `block ${JSON.stringify(block)} after ${last}`);
          last = block.tokenLast;
        }
        await sendExpecting(through, releaseOf(name, hold), 'released');
      }
    },
  },
  {
    name: 'F10: the token rises across the deletion of the record',
    applies: (harness) => harness.forget !== undefined,
    async try({ harness, store, name, newHold, past }) {
      let last = 0;
      for (let round = 0; round < 3; round++) {
        const hold = newHold();
        const granted = await sendExpecting(store, claimOf(name, hold), 'granted');
        assert.ok(granted.token > last, `token ${granted.token} after ${last}`);
        last = granted.tokenLast;
        await sendExpecting(store, releaseOf(name, hold), 'released');
        await past(20);
        await harness.forget?.(name);
      }
    },
  },
  {
    name: 'an expired holder is over by the store’s clock, and its token is passed',
    async try({ store, another, name, newHold, past }) {
      const hold = newHold();
      const first = await sendExpecting(store, claimOf(name, hold, { ttlMs: 60 }), 'granted');
      await past(80);
      const other = await another();
      const second = await claimExpired(other, claimOf(name, newHold()));
      assert.ok(second.now >= first.expiresAt, 'granted before the first had expired');
      assert.ok(second.token > first.tokenLast);
      await sendExpecting(store, renewOf(name, hold), 'lost', 'an expired hold was renewed');
      await sendExpecting(store, claimOf(name, hold), 'withdrawn', 'an expired hold was granted again');
    },
  },
  {
    name: 'P2: the one who took over from an expired holder can release, and the old one cannot',
    async try({ store, name, newHold, past }) {
      const old = newHold();
      const next = newHold();
      await sendExpecting(store, claimOf(name, old, { owner: 'old', ttlMs: 40 }), 'granted');
      await past(60);
      await claimExpired(store, claimOf(name, next, { owner: 'next' }));
      assert.equal((await store.read(name))?.holders[0]?.owner, 'next');
      assert.equal((await sendExpecting(store, releaseOf(name, old), 'released')).held, false);
      await sendExpecting(store, claimOf(name, newHold(), { queue: false }), 'busy');
      assert.equal((await sendExpecting(store, releaseOf(name, next), 'released')).held, true);
      assert.equal(await store.read(name), null);
    },
  },
  {
    name: 'permits: a semaphore gives as many as it has, and holders expire one by one (P24)',
    shared: true,
    async try({ store, name, newHold, past }) {
      const of3 = { capacity: 3, queue: false };
      const long = newHold();
      const two = claimOf(name, newHold(), { ...of3, permits: 2 });
      await sendTogether(store, [
        [claimOf(name, long, of3), 'granted'],
        [claimOf(name, newHold(), { ...of3, ttlMs: 150 }), 'granted'],
        [two, 'busy'],
      ]);
      await past(170);
      const granted = await sendExpecting(store, two, 'granted');
      assert.equal(granted.tokenLast, granted.token, 'only exclusive holds have blocks');
      await sendExpecting(store, renewOf(name, long), 'renewed');
      await sendExpecting(store, claimOf(name, newHold(), of3), 'busy');
    },
  },
  {
    name: 'the smallest capacity counts: a reader cannot join a mutex, nor a mutex a reader',
    shared: true,
    async try({ store, key, newHold }) {
      const reader = { capacity: 1_000_000, queue: false };
      const [mutexFirst, readerFirst] = [key(), key()];
      await sendExpecting(store, claimOf(mutexFirst, newHold()), 'granted');
      await sendExpecting(store, claimOf(mutexFirst, newHold(), reader), 'busy');
      await sendExpecting(store, claimOf(readerFirst, newHold(), reader), 'granted');
      await sendExpecting(store, claimOf(readerFirst, newHold(), reader), 'granted');
      await sendExpecting(store, claimOf(readerFirst, newHold(), { queue: false }), 'busy');
    },
  },
  {
    name: `a busy answer names at most ${HOLDERS_SHOWN} holders`,
    shared: true,
    async try({ store, name, newHold }) {
      const many = Array.from({ length: HOLDERS_SHOWN + 4 }, () => newHold());
      const capacity = many.length;
      const replies = await sendAll(
        store,
        many.map((hold) => claimOf(name, hold, { capacity })),
      );
      for (const reply of replies) expectKind(reply, 'granted');
      const claim = claimOf(name, newHold(), { capacity });
      assert.equal((await sendExpecting(store, claim, 'busy')).holders.length, HOLDERS_SHOWN);
      assert.equal((await store.read(name))?.holders.length, many.length, 'a view shows them all');
    },
  },
  {
    name: `marks of the last ${MARKS_MAX} processes are kept`,
    async try({ store, name, process }) {
      const holds = Array.from({ length: MARKS_MAX + 2 }, () => ({ process: process(), number: 3 }));
      await sendAll(
        store,
        holds.map((hold) => releaseOf(name, hold)),
      );
      const late = holds.map((hold) => claimOf(name, { ...hold, number: 2 }, { queue: false }));
      const kinds = (await sendAll(store, late)).map((reply) => reply.kind);
      assert.deepEqual(kinds, ['granted', 'busy', ...Array.from({ length: MARKS_MAX }, () => 'withdrawn')]);
    },
  },
];
