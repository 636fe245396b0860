/** The real engine over a bad network in front of a real server: two never believe to hold one key. */
import { setTimeout as sleep } from 'node:timers/promises';
import { AcquireTimeoutError, createLocks, type Lease, type Locks, StoreError } from 'holdfast';
import { faultyStore, seededRandom } from 'holdfast/testkit';
import { available, type PostgresServer, startPostgres } from 'holdfast-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrated, openStoreWith } from './store-scene.js';

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
const RUN_MS = 4_000;

interface Watched {
  readonly inside: Set<Lease>;
  readonly entered: Lease[];
  readonly faults: string[];
}

/** At every entry: nobody else inside believes to hold, and the token is above all that came in before. */
function enter({ inside, entered, faults }: Watched, lease: Lease): void {
  if (!lease.held) return;
  for (const other of inside) if (other.held) faults.push(`${lease.owner} entered beside ${other.owner}`);
  const last = entered.at(-1);
  if (last && lease.token <= last.token) faults.push(`token ${lease.token} after ${last.token}`);
  entered.push(lease);
}

async function contend(locks: Locks, key: string, watched: Watched, seed: number): Promise<void> {
  const random = seededRandom(seed);
  const until = performance.now() + RUN_MS;
  while (performance.now() < until) {
    try {
      const lease = await locks.acquire(key, { ttl: random.between(200, 800), wait: 2_000 });
      enter(watched, lease);
      watched.inside.add(lease);
      await sleep(random.chance(0.1) ? 300 : random.between(0, 15));
      watched.inside.delete(lease);
      await lease.release();
    } catch (error) {
      if (!(error instanceof AcquireTimeoutError || error instanceof StoreError)) throw error;
    }
  }
}

describe.runIf(available('postgres'))('locks on PostgreSQL over a faulty store', () => {
  let server: PostgresServer;

  beforeAll(async () => {
    server = await startPostgres();
    await migrated(server.url);
  });

  afterAll(() => server?.stop());

  const first = Math.floor(Math.random() * 1_000_000);

  it.each([first, first + 1])(
    'F4, F5, F7, F27: stay exclusive, with rising tokens, and leave nothing (seed %i)',
    async (seed) => {
      const key = `faulty-${seed}`;
      const watched: Watched = { inside: new Set(), entered: [], faults: [] };
      const looking = await openStoreWith(server.url);
      const stores = await Promise.all(
        Array.from({ length: PROCESSES }, async (_, index) =>
          faultyStore(await openStoreWith(server.url), {
            seed: seed * 100 + index,
            faults: FAULTS,
            lateMsMax: 250,
          }),
        ),
      );
      const users = stores.map((faulty, index) => createLocks(faulty, { owner: `process ${index}` }));
      await Promise.all(
        users.flatMap((user, index) => [
          contend(user, key, watched, seed * 1_000 + index),
          contend(user, key, watched, seed * 2_000 + index),
        ]),
      );
      for (const faulty of stores) faulty.heal();
      await Promise.all(users.map((user) => user.close()));
      const struck = stores.flatMap((faulty) => [...faulty.struck.values()]).reduce((a, b) => a + b, 0);
      expect(watched.faults).toEqual([]);
      expect(watched.entered.length).toBeGreaterThan(10);
      expect(new Set(watched.entered.map(({ owner }) => owner)).size).toBeGreaterThan(1);
      expect(struck).toBeGreaterThan(20);
      await sleep(2_000);
      expect(await looking.read(`default/${key}`)).toBeNull();
      await looking.close();
    },
    60_000,
  );
});
