/** A mixed fleet over a bad network: half of it speaks HTTP, half of it PostgreSQL's protocol, all want one key. */
import { setTimeout as sleep } from 'node:timers/promises';
import { AcquireTimeoutError, createLocks, type Lease, type Locks, StoreError } from 'holdfast';
import { postgresStore } from 'holdfast/postgres';
import { supabaseStore } from 'holdfast/supabase';
import { faultyStore, seededRandom } from 'holdfast/testkit';
import { available } from 'holdfast-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openScene, type Scene } from './scene.js';

const FAULTS = {
  commandLost: 0.03,
  replyLost: 0.03,
  commandLate: 0.03,
  replyLate: 0.03,
  doubled: 0.05,
  overtaken: 0.03,
  hung: 0.02,
  throwing: 0.02,
};
const PROCESSES = 4;
const RUN_MS = 5_000;

/** At every entry: nobody else inside believes to hold, and the token is above all that came in before. */
class Room {
  readonly faults: string[] = [];
  readonly entered: Lease[] = [];
  readonly #inside = new Set<Lease>();

  enter(lease: Lease): void {
    if (lease.held) {
      for (const other of this.#inside) {
        if (other.held) this.faults.push(`${lease.owner} entered beside ${other.owner}`);
      }
      const last = this.entered.at(-1);
      if (last && lease.token <= last.token) this.faults.push(`token ${lease.token} after ${last.token}`);
      this.entered.push(lease);
    }
    this.#inside.add(lease);
  }

  leave(lease: Lease): void {
    this.#inside.delete(lease);
  }
}

async function contend(locks: Locks, key: string, room: Room, seed: number): Promise<void> {
  const random = seededRandom(seed);
  const until = performance.now() + RUN_MS;
  while (performance.now() < until) {
    try {
      const lease = await locks.acquire(key, { ttl: random.between(300, 900), wait: 3_000 });
      room.enter(lease);
      await sleep(random.chance(0.1) ? 300 : random.between(0, 15));
      room.leave(lease);
      await lease.release();
    } catch (error) {
      if (!(error instanceof AcquireTimeoutError || error instanceof StoreError)) throw error;
    }
  }
}

describe.runIf(available('postgres') && available('postgrest'))('a mixed fleet over faulty stores', () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene();
  });
  afterAll(() => scene?.stop());

  const seed = Number(process.env.HOLDFAST_SEED ?? Math.floor(Math.random() * 1_000_000));

  it(`F4, F5, F7, F27: stays exclusive, with rising tokens, and leaves nothing (HOLDFAST_SEED=${seed})`, async () => {
    const key = `faulty-${seed}`;
    const room = new Room();
    const stores = Array.from({ length: PROCESSES }, (_, index) => {
      const store = index % 2 === 0 ? supabaseStore(scene.client('service_role')) : postgresStore(scene.pool);
      return faultyStore(store, { seed: seed * 100 + index, faults: FAULTS, lateMsMax: 250 });
    });
    const users = stores.map((store, index) => createLocks(store, { owner: `process ${index}` }));
    await Promise.all(
      users.flatMap((user, index) =>
        [1_000, 2_000].map((lot) => contend(user, key, room, seed * lot + index)),
      ),
    );
    for (const store of stores) store.heal();
    await Promise.all(users.map((user) => user.close()));
    expect(room.faults).toEqual([]);
    expect(room.entered.length).toBeGreaterThan(10);
    expect(new Set(room.entered.map(({ owner }) => owner)).size).toBeGreaterThan(1);
    expect(stores.flatMap(({ struck }) => [...struck.values()]).reduce((a, b) => a + b, 0)).toBeGreaterThan(
      20,
    );
    const looking = supabaseStore(scene.client('service_role'));
    await expect.poll(() => looking.read(`default/${key}`), { timeout: 20_000, interval: 200 }).toBeNull();
    await looking.close();
  }, 90_000);
});
