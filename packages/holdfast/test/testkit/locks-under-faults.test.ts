/** The real engine over a bad network: whatever is lost, late or doubled, two never believe to hold one key. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { AcquireTimeoutError, type Lease, type Locks, StoreError } from '../../src/index.js';
import { createLocks } from '../../src/locks.js';
import { memoryStore } from '../../src/stores/memory.js';
import { faultyStore, seededRandom } from '../../src/testkit/index.js';
import { connectionTo } from './connection.js';

const FAULTS = {
  commandLost: 0.03,
  replyLost: 0.03,
  commandLate: 0.03,
  replyLate: 0.03,
  doubled: 0.05,
  overtaken: 0.03,
  hung: 0.02,
  throwing: 0.02,
  hintLost: 0.1,
  hintLate: 0.1,
  hintDoubled: 0.1,
};

const PROCESSES = 4;
const RUN_MS = 3_000;

interface Watched {
  readonly entered: Lease[];
  readonly faults: string[];
}

/** At every entry: nobody else inside believes to hold, and the token is above all that came in before. */
function enter(watched: Watched, inside: Set<Lease>, lease: Lease): void {
  if (!lease.held) return;
  for (const other of inside) {
    if (other.held) watched.faults.push(`${lease.owner} entered beside ${other.owner}`);
  }
  const last = watched.entered.at(-1);
  if (last && lease.token <= last.token) watched.faults.push(`token ${lease.token} after ${last.token}`);
  watched.entered.push(lease);
}

async function contend(locks: Locks, watched: Watched, inside: Set<Lease>, seed: number): Promise<void> {
  const random = seededRandom(seed);
  const until = performance.now() + RUN_MS;
  while (performance.now() < until) {
    try {
      const lease = await locks.acquire('k', { ttl: random.between(150, 600), wait: 2_000 });
      enter(watched, inside, lease);
      inside.add(lease);
      await sleep(random.chance(0.1) ? 300 : random.between(0, 15));
      inside.delete(lease);
      await lease.release();
    } catch (error) {
      if (!(error instanceof AcquireTimeoutError || error instanceof StoreError)) throw error;
    }
  }
}

describe('locks over a faulty store', () => {
  it.concurrent.each([1, 2, 3, 4])(
    'F4, F5, F7, F27: stay exclusive, with rising tokens, and leave nothing (seed %i)',
    async (seed) => {
      const store = memoryStore();
      const watched: Watched = { entered: [], faults: [] };
      const inside = new Set<Lease>();
      const stores = Array.from({ length: PROCESSES }, (_, index) =>
        faultyStore(connectionTo(store), { seed: seed * 100 + index, faults: FAULTS, lateMsMax: 250 }),
      );
      const users = stores.map((faulty, index) => createLocks(faulty, { owner: `process ${index}` }));
      await Promise.all(
        users.flatMap((user, index) => [
          contend(user, watched, inside, seed * 1_000 + index),
          contend(user, watched, inside, seed * 2_000 + index),
        ]),
      );
      for (const faulty of stores) faulty.heal();
      await Promise.all(users.map((user) => user.close()));
      const struck = stores.reduce(
        (sum, faulty) => sum + [...faulty.struck.values()].reduce((a, b) => a + b, 0),
        0,
      );
      expect(watched.faults).toEqual([]);
      expect(watched.entered.length).toBeGreaterThan(10);
      expect(new Set(watched.entered.map(({ owner }) => owner)).size).toBeGreaterThan(1);
      expect(struck).toBeGreaterThan(20);
      await sleep(1_700);
      expect(await store.read('default/k')).toBeNull();
    },
  );
});
