/** The queue: first come, first served; a woken waiter has its window, and a dead one delays the next for no longer. */
import assert from 'node:assert/strict';
import { QUEUE_MAX, type Store, type Traits, WINDOW_HINT_MS, WINDOW_MS } from '../../protocol/index.js';
import {
  type CaseContext,
  type CaseDefinition,
  claimOf,
  expectKind,
  releaseOf,
  sendAll,
  sendExpecting,
} from './case-context.js';

const hasLine = (traits: Traits): boolean => traits.queue;

const HOLDING = { ttlMs: 30_000 };

/** A held key with so many waiters in the queue. */
async function lineOf(context: CaseContext, length: number, store: Store = context.store) {
  const name = context.key();
  const holder = { process: context.process(), number: 1 };
  await sendExpecting(store, claimOf(name, holder, HOLDING), 'granted');
  const waiters = Array.from({ length }, () => claimOf(name, { process: context.process(), number: 1 }));
  for (const [place, waiter] of waiters.entries()) {
    assert.equal((await sendExpecting(store, waiter, 'busy')).position, place);
  }
  return { name, holder, waiters };
}

export const queue: readonly CaseDefinition[] = [
  {
    name: 'F19: waiters are served in the order they came, and nobody overtakes the one whose turn it is',
    inMs: WINDOW_MS / 2,
    needs: hasLine,
    async try(context) {
      const { store } = context;
      const { name, holder, waiters } = await lineOf(context, 3);
      let last = holder;
      for (const waiter of waiters) {
        await sendExpecting(store, releaseOf(name, last), 'released');
        for (const behind of waiters.slice(waiters.indexOf(waiter) + 1))
          await sendExpecting(store, behind, 'busy');
        const newcomer = claimOf(name, { process: context.process(), number: 1 }, { queue: false });
        const busy = await sendExpecting(store, newcomer, 'busy', 'a newcomer overtook the line');
        assert.equal(busy.position, null);
        assert.ok(busy.freeInMs <= WINDOW_HINT_MS, `freeInMs is ${busy.freeInMs} with a woken waiter ahead`);
        await sendExpecting(store, waiter, 'granted');
        last = waiter.hold;
      }
    },
  },
  {
    name: 'F20: a dead head holds up the next for its window and no longer; coming back, it is first again',
    inMs: WINDOW_MS * 1.5,
    needs: hasLine,
    async try(context) {
      const { store } = context;
      const { name, holder, waiters } = await lineOf(context, 3);
      const [dead, next, third] = waiters;
      assert.ok(dead && next && third);
      await sendExpecting(store, releaseOf(name, holder), 'released');
      await sendExpecting(store, next, 'busy');
      await context.past(WINDOW_MS + 20);
      await sendExpecting(store, third, 'busy');
      await sendExpecting(store, next, 'granted', 'the dead head still held it up');
      assert.equal(
        (await sendExpecting(store, dead, 'busy')).position,
        0,
        'the one that missed its window lost its place',
      );
      await sendExpecting(store, releaseOf(name, next.hold), 'released');
      await sendExpecting(store, third, 'busy');
      await sendExpecting(store, dead, 'granted');
    },
  },
  {
    name: 'a waiter that leaves makes way, and what it left is not granted to it later',
    inMs: WINDOW_MS / 2,
    needs: hasLine,
    async try(context) {
      const { store } = context;
      const { name, holder, waiters } = await lineOf(context, 2);
      const [first, second] = waiters;
      assert.ok(first && second);
      assert.equal((await sendExpecting(store, releaseOf(name, first.hold), 'released')).held, false);
      assert.equal((await sendExpecting(store, second, 'busy')).position, 0);
      await sendExpecting(store, releaseOf(name, holder), 'released');
      await sendExpecting(store, first, 'withdrawn');
      await sendExpecting(store, second, 'granted');
    },
  },
  {
    name: 'a later claim of a process takes the place of nothing: its earlier waiter leaves the line',
    needs: hasLine,
    async try(context) {
      const { store } = context;
      const { name, waiters } = await lineOf(context, 2);
      const [first] = waiters;
      assert.ok(first);
      const later = claimOf(name, { process: first.hold.process, number: 2 });
      assert.equal((await sendExpecting(store, later, 'busy')).position, 1);
      await sendExpecting(store, first, 'withdrawn');
    },
  },
  {
    name: 'a waiting writer is not starved by readers',
    inMs: WINDOW_MS / 2,
    needs: hasLine,
    async try(context) {
      const { store } = context;
      const name = context.key();
      const read = { permits: 1, capacity: 1_000 };
      const readers = Array.from({ length: 2 }, () => ({ process: context.process(), number: 1 }));
      for (const hold of readers) await sendExpecting(store, claimOf(name, hold, read), 'granted');
      const writer = claimOf(
        name,
        { process: context.process(), number: 1 },
        { permits: 1_000, capacity: 1_000 },
      );
      await sendExpecting(store, writer, 'busy');
      const late = claimOf(name, { process: context.process(), number: 1 }, read);
      await sendExpecting(store, late, 'busy', 'a reader overtook a waiting writer');
      for (const hold of readers) await sendExpecting(store, releaseOf(name, hold), 'released');
      await sendExpecting(store, late, 'busy');
      await sendExpecting(store, writer, 'granted');
    },
  },
  {
    name: 'the line is as long as the store says, and no longer',
    needs: hasLine,
    async try(context) {
      const { store, harness } = context;
      const { lineMax = QUEUE_MAX } = harness;
      const name = context.key();
      await sendExpecting(
        store,
        claimOf(name, { process: context.process(), number: 1 }, HOLDING),
        'granted',
      );
      const many = Array.from({ length: lineMax }, () =>
        claimOf(name, { process: context.process(), number: 1 }),
      );
      const replies = await sendAll(store, many);
      for (const [place, reply] of replies.entries()) assert.equal(expectKind(reply, 'busy').position, place);
      const oneMore = claimOf(name, { process: context.process(), number: 1 });
      assert.equal((await sendExpecting(store, oneMore, 'busy')).position, null);
      assert.equal((await store.read(name))?.waiters.length, lineMax);
    },
  },
];
