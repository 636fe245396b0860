/** A quorum of private Redis servers, enrolled, with clients that end with it. */
import { createLocks, type Locks } from 'holdfast';
import { WAITERS_MAX } from 'holdfast/compare-and-swap';
import type { Store } from 'holdfast/protocol';
import { enrolMembers, quorumStore } from 'holdfast/quorum';
import type { RedisClient } from 'holdfast/redis';
import type { Harness } from 'holdfast/testkit';
import { type ProxyTarget, type RedisServer, startRedis } from 'holdfast-test-servers';
import { Redis } from 'ioredis';
import { createClient } from 'redis';

export { runSuite } from '../store-talk.js';

/** A restart loses nothing. */
export const SAFE = { appendonly: 'yes', appendfsync: 'always' };

export const PREFIX = 'holdfast-quorum:';

export class QuorumScene {
  readonly servers: readonly RedisServer[];
  readonly clients: readonly Redis[];
  readonly #ends: (() => unknown)[] = [];

  private constructor(servers: readonly RedisServer[]) {
    this.servers = servers;
    this.clients = this.connect();
  }

  static async open(
    onFinished: (clear: () => Promise<void>) => void,
    count = 3,
    config: Readonly<Record<string, string>> = {},
  ): Promise<QuorumScene> {
    const servers = await Promise.all(Array.from({ length: count }, () => startRedis({ own: true, config })));
    const scene = new QuorumScene(servers);
    onFinished(() => scene.close());
    await enrolMembers(scene.clients);
    return scene;
  }

  /** What an operator does who knows that nothing was lost. */
  async enrolAllAgain(): Promise<void> {
    await Promise.all(this.clients.map((client) => client.del(`${PREFIX}member`)));
    await enrolMembers(this.clients);
  }

  /** A client of each server, as another process would have it. */
  connect(targets: readonly ProxyTarget[] = this.servers): readonly Redis[] {
    const clients = targets.map(({ host, port }) => new Redis({ host, port }));
    for (const client of clients) {
      client.on('error', ignoreOutage);
      this.#ends.push(() => client.disconnect());
    }
    return clients;
  }

  async connectNodeRedis(): Promise<readonly RedisClient[]> {
    const clients = this.servers.map(({ url }) => createClient({ url }));
    for (const client of clients) {
      client.on('error', ignoreOutage);
      await client.connect();
      this.#ends.push(() => client.destroy());
    }
    return clients;
  }

  store(targets?: readonly ProxyTarget[]): Store {
    const store = quorumStore(this.connect(targets));
    this.#ends.push(() => store.close());
    return store;
  }

  locks(options: { readonly ttlMs?: number; readonly targets?: readonly ProxyTarget[] } = {}): Locks {
    const locks = createLocks(this.store(options.targets), { ttl: options.ttlMs ?? 5_000 });
    this.#ends.push(() => locks.close({ drain: 0 }));
    return locks;
  }

  async close(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.resume()));
    for (const end of this.#ends.reverse()) await end();
    await Promise.all(this.servers.map((server) => server.stop()));
  }
}

/** `scene` is open only when the cases run. */
export function harnessOf(
  name: string,
  scene: () => QuorumScene,
  open = async (): Promise<Store> => scene().store(),
): Harness {
  const onAll = async (run: (client: Redis) => Promise<unknown>): Promise<void> => {
    await Promise.all(scene().clients.map(run));
  };
  return {
    name,
    // The error of the estimate on both sides, and what a busy machine adds to a round trip.
    doubtMs: 100,
    lineMax: WAITERS_MAX,
    open,
    forget: (key) => onAll((client) => client.del(`${PREFIX}key:${key}`)),
    spoil: (key) => {
      const v = `id\n${JSON.stringify({ version: 99 })}`;
      return onAll((client) => client.hset(`${PREFIX}key:${key}`, { p: '1.1', a: '1.1', f: '0', v }));
    },
  };
}

/** The outcomes are what is tested. */
function ignoreOutage(error: unknown): unknown {
  return error;
}
