/** The queue: first come, first served; a woken waiter has its window, and a dead one delays the next for no longer. */
import assert from 'node:assert/strict';
import {
  QUEUE_MAX,
  type Reply,
  type Traits,
  WAITER_LIFE_MS,
  WINDOW_HINT_MS,
  WINDOW_MS,
} from '../../protocol/index.js';
import {
  type CaseContext,
  type CaseDefinition,
  claimOf,
  expectKind,
  releaseOf,
  sendAll,
  sendExpecting,
  sendTogether,
} from './case-context.js';

const hasQueue = (traits: Traits): boolean => traits.queue;

const HOLDING = { ttlMs: 30_000 };
/** How often a claim asks for a place in the longest queue. */
const TRIES_MAX = 50;

/** A held key with so many waiters in the queue. Who is refused a place asks again, `triesMax` times in all. */
async function queueOf({ store, key, newHold }: CaseContext, length: number, triesMax = 1) {
  const name = key();
  const holder = newHold();
  const waiters = Array.from({ length }, () => claimOf(name, newHold()));
  const [held, ...busy] = await sendAll(store, [claimOf(name, holder, HOLDING), ...waiters]);
  assert.equal(held?.kind, 'granted');
  let places = placesIn(busy);
  for (let tries = 1; tries < triesMax && places.length < length; tries++) {
    places = [...places, ...placesIn(await sendAll(store, waiters.slice(places.length)))];
  }
  assert.deepEqual(
    places,
    waiters.map((_, place) => place),
  );
  return { name, holder, waiters };
}

/** Up to the first claim that got no place. */
function placesIn(replies: readonly Reply[]): readonly number[] {
  const places: number[] = [];
  for (const reply of replies) {
    const { position } = expectKind(reply, 'busy');
    if (position === null) break;
    places.push(position);
  }
  return places;
}

const cases: readonly CaseDefinition[] = [
  {
    name: 'F19: waiters are served in the order they came, and nobody overtakes the one whose turn it is',
    needs: hasQueue,
    async try(context) {
      const { store } = context;
      const { name, holder, waiters } = await queueOf(context, 3);
      let last = holder;
      for (const [place, waiter] of waiters.entries()) {
        const newcomer = claimOf(name, context.newHold(), { queue: false });
        const [, reply] = await sendTogether(store, [
          [releaseOf(name, last), 'released'],
          [newcomer, 'busy', 'a newcomer overtook the queue'],
          ...waiters.slice(place + 1).map((behind) => [behind, 'busy'] as const),
          [waiter, 'granted'],
        ]);
        assert.ok(reply?.kind === 'busy' && reply.position === null);
        assert.ok(
          reply.freeInMs <= WINDOW_HINT_MS,
          `freeInMs is ${reply.freeInMs} with a woken waiter ahead`,
        );
        last = waiter.hold;
      }
    },
  },
  {
    name: 'F20: a dead head holds up the next for its window and no longer; coming back, it is first again',
    needs: hasQueue,
    async try(context) {
      const { store } = context;
      const { name, holder, waiters } = await queueOf(context, 3);
      const [dead, next, third] = waiters;
      assert.ok(dead && next && third);
      await sendTogether(store, [
        [releaseOf(name, holder), 'released'],
        [next, 'busy'],
      ]);
      await context.past(WINDOW_MS + 20);
      const [, , back] = await sendTogether(store, [
        [third, 'busy'],
        [next, 'granted', 'the dead head still held it up'],
        [dead, 'busy'],
      ]);
      assert.ok(back?.kind === 'busy' && back.position === 0, 'who missed its window lost its place');
      await sendTogether(store, [
        [releaseOf(name, next.hold), 'released'],
        [third, 'busy'],
        [dead, 'granted'],
      ]);
    },
  },
  {
    name: 'a waiter that leaves makes way, and what it left is not granted to it later',
    needs: hasQueue,
    async try(context) {
      const { store } = context;
      const { name, holder, waiters } = await queueOf(context, 2);
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
    name: 'a later claim of a process takes the place of nothing: its earlier waiter leaves the queue',
    needs: hasQueue,
    async try(context) {
      const { store } = context;
      const { name, waiters } = await queueOf(context, 2);
      const [first] = waiters;
      assert.ok(first);
      const later = claimOf(name, { process: first.hold.process, number: 2 });
      assert.equal((await sendExpecting(store, later, 'busy')).position, 1);
      await sendExpecting(store, first, 'withdrawn');
    },
  },
  {
    name: 'a waiting writer is not starved by readers',
    shared: true,
    needs: hasQueue,
    async try(context) {
      const { store, name } = context;
      const read = { permits: 1, capacity: 1_000 };
      const readers = Array.from({ length: 2 }, () => context.newHold());
      for (const hold of readers) await sendExpecting(store, claimOf(name, hold, read), 'granted');
      const writer = claimOf(name, context.newHold(), { permits: 1_000, capacity: 1_000 });
      await sendExpecting(store, writer, 'busy');
      const late = claimOf(name, context.newHold(), read);
      await sendExpecting(store, late, 'busy', 'a reader overtook a waiting writer');
      await sendTogether(store, [
        ...readers.map((hold) => [releaseOf(name, hold), 'released'] as const),
        [late, 'busy'],
        [writer, 'granted'],
      ]);
    },
  },
  {
    name: 'the queue is as long as the store says, and no longer',
    needs: hasQueue,
    async try(context) {
      const { store, harness } = context;
      const { lineMax = QUEUE_MAX } = harness;
      // A store with a limit of its own may refuse a place in a long queue while it is slow.
      const triesMax = harness.lineMax === undefined ? 1 : TRIES_MAX;
      const { name } = await queueOf(context, lineMax, triesMax);
      const oneMore = claimOf(name, context.newHold());
      assert.equal((await sendExpecting(store, oneMore, 'busy')).position, null);
      assert.equal((await store.read(name))?.waiters.length, lineMax);
    },
  },
];

export const queue = cases.map((one) => ({ ...one, withinMs: WAITER_LIFE_MS }));
