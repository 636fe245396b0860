/** The real engine on a real server over a bad network: two never believe to hold one key, and nothing is left. */
import { setTimeout as sleep } from 'node:timers/promises';
import { AcquireTimeoutError, createLocks, type Lease, type Locks, StoreError } from 'holdfast';
import { redisStore } from 'holdfast/redis';
import { faultyStore, seededRandom } from 'holdfast/testkit';
import { available, type RedisServer, startRedis } from 'holdfast-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

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

class Room {
  readonly inside = new Set<Lease>();
  readonly wrong: string[] = [];
  entries = 0;
  #lastToken = 0;

  enter(lease: Lease): void {
    if (!lease.held) return;
    for (const other of this.inside) {
      if (other.held) this.wrong.push(`${lease.owner} entered beside ${other.owner}`);
    }
    if (lease.token <= this.#lastToken) this.wrong.push(`token ${lease.token} after ${this.#lastToken}`);
    this.#lastToken = lease.token;
    this.entries += 1;
  }
}

async function contend(locks: Locks, room: Room, seed: number): Promise<void> {
  const random = seededRandom(seed);
  const until = performance.now() + RUN_MS;
  while (performance.now() < until) {
    try {
      const lease = await locks.acquire('k', { ttl: random.between(150, 600), wait: 2_000 });
      room.enter(lease);
      room.inside.add(lease);
      await sleep(random.chance(0.1) ? 300 : random.between(0, 15));
      room.inside.delete(lease);
      await lease.release();
    } catch (error) {
      if (!(error instanceof AcquireTimeoutError || error instanceof StoreError)) throw error;
    }
  }
}

describe.runIf(available('redis'))('locks on Redis over a faulty connection', () => {
  let server: RedisServer;

  beforeAll(async () => {
    server = await startRedis();
  });

  afterAll(async () => {
    await server?.stop();
  });

  const drawn = Math.floor(Math.random() * 1_000_000);

  it.each([drawn, drawn + 1])(
    'F4, F5, F7, F27: stay exclusive, with rising tokens, and leave nothing (seed %i)',
    async (seed) => {
      const prefix = `faulty-${seed}:`;
      const clients = Array.from({ length: PROCESSES }, () => new Redis(server.url));
      const stores = clients.map((client, index) =>
        faultyStore(redisStore(client, { prefix }), {
          seed: seed * 100 + index,
          faults: FAULTS,
          lateMsMax: 250,
        }),
      );
      const users = stores.map((store, index) => createLocks(store, { owner: `process ${index}` }));
      const room = new Room();
      await Promise.all(
        users.flatMap((user, index) => [
          contend(user, room, seed * 1_000 + index),
          contend(user, room, seed * 2_000 + index),
        ]),
      );
      for (const store of stores) store.heal();
      await Promise.all(users.map((user) => user.close()));
      expect(room.wrong).toEqual([]);
      expect(room.entries).toBeGreaterThan(10);
      const [client] = clients;
      if (!client) throw new Error('No client.');
      await sleep(1_700);
      expect(await redisStore(client, { prefix }).read('default/k')).toBeNull();
      for (const each of clients) each.disconnect();
    },
  );
});
