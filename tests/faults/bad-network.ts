/** The real engine over a bad network: whatever is lost, late or doubled, two never believe to hold one key. */
import { setTimeout as sleep } from 'node:timers/promises';
import { AcquireTimeoutError, createLocks, type Lease, type Locks, StoreError } from 'holdfast';
import type { Store } from 'holdfast/protocol';
import { faultyStore, seededRandom } from 'holdfast/testkit';
import { expect } from 'vitest';

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

/** The longest lease, a second, and what a crowded machine takes. */
const FREE_MS_MAX = 10_000;
const MORE_MS_MAX = 60_000;

export interface Contention {
  /** One a process; each is closed at the end. */
  readonly stores: readonly Store[];
  readonly key: string;
  readonly seed: number;
  readonly runMs: number;
  /** Between these. */
  readonly ttlMs: readonly [number, number];
  /** How long each waits. Who gives up leaves something to write: on a store that is slow to write it should be rare. */
  readonly waitMs?: number;
}

/** At every entry: nobody else inside believes to hold, and the token is above all that came in before. */
class Room {
  readonly wrong: string[] = [];
  readonly entered: Lease[] = [];
  readonly #inside = new Set<Lease>();

  enter(lease: Lease): void {
    if (lease.held) {
      for (const other of this.#inside) {
        if (other.held) this.wrong.push(`${lease.owner} entered beside ${other.owner}`);
      }
      const last = this.entered.at(-1);
      if (last && lease.token <= last.token) this.wrong.push(`token ${lease.token} after ${last.token}`);
      this.entered.push(lease);
    }
    this.#inside.add(lease);
  }

  leave(lease: Lease): void {
    this.#inside.delete(lease);
  }
}

async function contend(
  locks: Locks,
  { key, runMs, ttlMs, waitMs = 2_000 }: Contention,
  room: Room,
  seed: number,
  isEnough: () => boolean,
): Promise<void> {
  const random = seededRandom(seed);
  const until = performance.now() + runMs;
  // On a busy machine little happens in that time.
  const atLast = until + MORE_MS_MAX;
  while (performance.now() < (isEnough() ? until : atLast)) {
    try {
      const lease = await locks.acquire(key, { ttl: random.between(...ttlMs), wait: waitMs });
      room.enter(lease);
      await sleep(random.chance(0.1) ? 300 : random.between(0, 15));
      room.leave(lease);
      await lease.release();
    } catch (error) {
      if (!(error instanceof AcquireTimeoutError || error instanceof StoreError)) throw error;
    }
  }
}

/** Two contenders a process. Afterwards nobody holds the key, and `looking` says so. */
export async function expectExclusion(contention: Contention, looking: Store): Promise<void> {
  const { seed, key } = contention;
  const stores = contention.stores.map((store, index) =>
    faultyStore(store, { seed: seed * 100 + index, faults: FAULTS, lateMsMax: 250 }),
  );
  const users = stores.map((store, index) => createLocks(store, { owner: `process ${index}` }));
  const room = new Room();
  const owners = (): number => new Set(room.entered.map(({ owner }) => owner)).size;
  const strikes = (): number =>
    stores.flatMap((store) => [...store.struck.values()]).reduce((sum, count) => sum + count, 0);
  const isEnough = (): boolean => room.entered.length > 10 && owners() > 1 && strikes() > 20;
  await Promise.all(
    users.flatMap((user, index) =>
      [1_000, 2_000].map((lot) => contend(user, contention, room, seed * lot + index, isEnough)),
    ),
  );
  for (const store of stores) store.heal();
  await Promise.all(users.map((user) => user.close({ drain: 0 })));
  expect(room.wrong).toEqual([]);
  expect(room.entered.length).toBeGreaterThan(10);
  expect(owners()).toBeGreaterThan(1);
  expect(strikes()).toBeGreaterThan(20);
  const until = performance.now() + FREE_MS_MAX;
  while ((await looking.read(`default/${key}`)) !== null && performance.now() < until) await sleep(100);
  expect(await looking.read(`default/${key}`)).toBeNull();
}
