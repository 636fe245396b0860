/** The line of waiters: first come, first served; woken, waited for a while, and never in anybody's way for long. */
import assert from 'node:assert/strict';
import { QUEUE_MAX, type Store, type Traits, WINDOW_HINT_MS, WINDOW_MS } from '../../protocol/index.js';
import { claimOf, expectKind, type Promised, releaseOf, type Scene, sayAll, sayFor } from './scene.js';

const hasLine = (traits: Traits): boolean => traits.queue;

const HOLDING = { ttlMs: 30_000 };

/** A held key with so many in line behind the holder. */
async function lineOf(scene: Scene, length: number, store: Store = scene.store) {
  const name = scene.key();
  const holder = { process: scene.process(), number: 1 };
  await sayFor(store, claimOf(name, holder, HOLDING), 'granted');
  const waiters = Array.from({ length }, () => claimOf(name, { process: scene.process(), number: 1 }));
  for (const [place, waiter] of waiters.entries()) {
    assert.equal((await sayFor(store, waiter, 'busy')).position, place);
  }
  return { name, holder, waiters };
}

export const line: readonly Promised[] = [
  {
    name: 'F19: waiters are served in the order they came, and nobody overtakes the one whose turn it is',
    inMs: WINDOW_MS / 2,
    needs: hasLine,
    async try(scene) {
      const { store } = scene;
      const { name, holder, waiters } = await lineOf(scene, 3);
      let last = holder;
      for (const waiter of waiters) {
        await sayFor(store, releaseOf(name, last), 'released');
        for (const behind of waiters.slice(waiters.indexOf(waiter) + 1)) await sayFor(store, behind, 'busy');
        const newcomer = claimOf(name, { process: scene.process(), number: 1 }, { queue: false });
        const busy = await sayFor(store, newcomer, 'busy', 'a newcomer overtook the line');
        assert.equal(busy.position, null);
        assert.ok(busy.freeInMs <= WINDOW_HINT_MS, `freeInMs is ${busy.freeInMs} with a woken waiter ahead`);
        await sayFor(store, waiter, 'granted');
        last = waiter.hold;
      }
    },
  },
  {
    name: 'F20: a dead head holds up the next for its window and no longer; coming back, it is first again',
    inMs: WINDOW_MS * 1.5,
    needs: hasLine,
    async try(scene) {
      const { store } = scene;
      const { name, holder, waiters } = await lineOf(scene, 3);
      const [dead, next, third] = waiters;
      assert.ok(dead && next && third);
      await sayFor(store, releaseOf(name, holder), 'released');
      await sayFor(store, next, 'busy');
      await scene.past(WINDOW_MS + 20);
      await sayFor(store, third, 'busy');
      await sayFor(store, next, 'granted', 'the dead head still held it up');
      assert.equal(
        (await sayFor(store, dead, 'busy')).position,
        0,
        'the one that missed its window lost its place',
      );
      await sayFor(store, releaseOf(name, next.hold), 'released');
      await sayFor(store, third, 'busy');
      await sayFor(store, dead, 'granted');
    },
  },
  {
    name: 'a waiter that leaves makes way, and what it left is not granted to it later',
    inMs: WINDOW_MS / 2,
    needs: hasLine,
    async try(scene) {
      const { store } = scene;
      const { name, holder, waiters } = await lineOf(scene, 2);
      const [first, second] = waiters;
      assert.ok(first && second);
      assert.equal((await sayFor(store, releaseOf(name, first.hold), 'released')).held, false);
      assert.equal((await sayFor(store, second, 'busy')).position, 0);
      await sayFor(store, releaseOf(name, holder), 'released');
      await sayFor(store, first, 'withdrawn');
      await sayFor(store, second, 'granted');
    },
  },
  {
    name: 'a later claim of a process takes the place of nothing: its earlier waiter leaves the line',
    needs: hasLine,
    async try(scene) {
      const { store } = scene;
      const { name, waiters } = await lineOf(scene, 2);
      const [first] = waiters;
      assert.ok(first);
      const later = claimOf(name, { process: first.hold.process, number: 2 });
      assert.equal((await sayFor(store, later, 'busy')).position, 1);
      await sayFor(store, first, 'withdrawn');
    },
  },
  {
    name: 'a waiting writer is not starved by readers',
    inMs: WINDOW_MS / 2,
    needs: hasLine,
    async try(scene) {
      const { store } = scene;
      const name = scene.key();
      const read = { permits: 1, capacity: 1_000 };
      const readers = Array.from({ length: 2 }, () => ({ process: scene.process(), number: 1 }));
      for (const hold of readers) await sayFor(store, claimOf(name, hold, read), 'granted');
      const writer = claimOf(
        name,
        { process: scene.process(), number: 1 },
        { permits: 1_000, capacity: 1_000 },
      );
      await sayFor(store, writer, 'busy');
      const late = claimOf(name, { process: scene.process(), number: 1 }, read);
      await sayFor(store, late, 'busy', 'a reader overtook a waiting writer');
      for (const hold of readers) await sayFor(store, releaseOf(name, hold), 'released');
      await sayFor(store, late, 'busy');
      await sayFor(store, writer, 'granted');
    },
  },
  {
    name: 'the line is as long as the store says, and no longer',
    needs: hasLine,
    async try(scene) {
      const { store, harness } = scene;
      const { lineMax = QUEUE_MAX } = harness;
      const name = scene.key();
      await sayFor(store, claimOf(name, { process: scene.process(), number: 1 }, HOLDING), 'granted');
      const many = Array.from({ length: lineMax }, () =>
        claimOf(name, { process: scene.process(), number: 1 }),
      );
      const replies = await sayAll(store, many);
      for (const [place, reply] of replies.entries()) assert.equal(expectKind(reply, 'busy').position, place);
      const oneMore = claimOf(name, { process: scene.process(), number: 1 });
      assert.equal((await sayFor(store, oneMore, 'busy')).position, null);
      assert.equal((await store.read(name))?.waiters.length, lineMax);
    },
  },
];
