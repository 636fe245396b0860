/**
 * Locks on a quorum of 2f+1 independent Redis servers, of which f may be lost.
 *
 * Layout: on every server, a record per key (redis-member.ts). A lock is what a majority agrees on.
 *
 * Atomic: this process decides, with `decide`, and a majority accepts the result in place of exactly the value decided on
 * (register.ts). While only one process uses a key, a command is one round trip to all servers at once; the first command
 * of a process, and the first after another process, are two or three.
 *
 * Clock: the servers', of which a majority counts (quorum-time.ts). No single clock decides, and no client's. Clocks may
 * be apart, but a server whose clock is set forward forgets records too early.
 *
 * A lost reply: a majority has accepted the value, or will never, or a later command finds and completes it. The outcome
 * is unknown, and the core asks again with the same hold.
 *
 * A server that has lost data must not vote, since it has forgotten its promises: only enrolled servers do
 * (enrolment.ts). Wake-ups are published on all servers. The timers bound how long answers are awaited.
 */
import { systemClock } from '../../clock.js';
import {
  InvalidArgumentError,
  keysInOrder,
  type ListQuery,
  type Snapshot,
  type Store,
  snapshotOf,
  type Wake,
} from '../../protocol/index.js';
import { checkOptionNames } from '../../protocol/option-names.js';
import { firstOf, readInOrder } from '../clients/listed.js';
import type { OnListening, OnWake } from '../clients/wake-up.js';
import { CompareAndSwap } from '../compare-and-swap/compare-and-swap.js';
import { estimatedTraits } from '../compare-and-swap/estimated-traits.js';
import { RecentMap } from '../compare-and-swap/recent-map.js';
import { connectionTo, type RedisClient } from '../redis/clients.js';
import { scanKeys } from '../redis/key-scan.js';
import { type WakeListener, wakeListener } from '../redis/wake-listener.js';
import { probe } from './probe.js';
import { Quorum } from './quorum.js';
import { RedisMember } from './redis-member.js';
import { QuorumRegister } from './register.js';

/** Options of `quorumStore`. */
export interface QuorumStoreOptions {
  /** The prefix of all keys and channels. Default 'holdfast-quorum:'. Processes that share locks use the same. */
  readonly prefix?: string;
}

const CLOCK_ERROR_MS = 15;
/** Records that a list reads at once. */
const LISTED_AT_ONCE = 32;
const MEMBERS_MIN = 3;
const MEMBERS_MAX = 9;

export function membersOf(
  clients: readonly RedisClient[],
  options: QuorumStoreOptions,
): readonly RedisMember[] {
  checkOptionNames(options, ['prefix']);
  const { prefix = 'holdfast-quorum:' } = options;
  if (typeof prefix !== 'string' || prefix === '') {
    throw new InvalidArgumentError('The prefix has to be a non-empty text, such as "holdfast-quorum:".');
  }
  const count = Array.isArray(clients) ? clients.length : 0;
  if (count < MEMBERS_MIN || count > MEMBERS_MAX || count % 2 === 0 || new Set(clients).size < count) {
    throw new InvalidArgumentError(
      'A quorum consists of 3, 5, 7 or 9 Redis servers: pass one client of each, all different.',
    );
  }
  return clients.map((client, index) => {
    const connection = connectionTo(client);
    if (connection.isCluster) {
      throw new InvalidArgumentError(
        'The servers of a quorum are independent: a cluster cannot be one of them.',
      );
    }
    return new RedisMember({ connection, prefix, name: `server ${index + 1}` });
  });
}

/** The clients are used as they are and never closed; for listening, the store opens one connection like each. */
export function quorumStore(clients: readonly RedisClient[], options: QuorumStoreOptions = {}): Store {
  const members = membersOf(clients, options);
  const quorum = new Quorum(members, systemClock);
  const wakes = new QuorumWakes(members);
  const register = new QuorumRegister(quorum, (key, sent) => wakes.send(key, sent));
  const swap = new CompareAndSwap(register, quorum.time, { name: 'quorum', queue: true });

  async function snapshot(key: string): Promise<Snapshot | null> {
    swap.checkOpen();
    const state = await register.peek(key);
    return snapshotOf(key, state, (await swap.now()).earliest);
  }

  async function* snapshots(query: ListQuery): AsyncGenerator<Snapshot | null> {
    const found = await quorum.collect((index) => {
      const { connection, keyPrefix } = members[index] as RedisMember;
      return scanKeys(connection, keyPrefix, query);
    });
    yield* readInOrder(keysInOrder(new Set(found.flat()), query), LISTED_AT_ONCE, snapshot);
  }

  return {
    name: 'quorum',
    traits: estimatedTraits(CLOCK_ERROR_MS, { push: true, queue: true }),
    apply: (commands) => swap.apply(commands),
    async listen(inbox, onWake, onListening = () => undefined) {
      swap.checkOpen();
      return await wakes.listen(inbox, onWake, onListening);
    },
    read: snapshot,
    async *list(query) {
      swap.checkOpen();
      yield* firstOf(snapshots(query), query.limit);
    },
    async probe() {
      swap.checkOpen();
      return await probe(quorum, members, wakes.error());
    },
    async close() {
      swap.close();
      await wakes.close();
    },
  };
}

/** How soon a listener that could not subscribe at a server tries again. */
const LISTEN_AGAIN_MS = 2_000;
/** Wake-ups come once from every server; so many of the last are known. */
const HEARD_MAX = 2_000;

/** Wake-ups over all servers: each listener gets each one once, as long as one server carries it. */
class QuorumWakes {
  readonly #members: readonly RedisMember[];
  readonly #listeners: readonly WakeListener[];
  #lastError: unknown;
  #closed = false;

  constructor(members: readonly RedisMember[]) {
    this.#members = members;
    this.#listeners = members.map(({ connection }) =>
      wakeListener((onMessage, onListening) => connection.subscriber(onMessage, onListening), ''),
    );
  }

  /** The key in a message begins with a random id, which is the same on all servers. */
  send(key: string, wakes: readonly Wake[]): void {
    for (const { inbox, why } of wakes) {
      const text = `${why}:${systemClock.randomId()} ${key}`;
      for (const member of this.#members) member.publish(inbox, text).catch(this.#note);
    }
  }

  /** Rejects when no server can be listened to now. */
  async listen(inbox: string, onWake: OnWake, onListening: OnListening): Promise<() => Promise<void>> {
    const heard = new RecentMap<string, true>(HEARD_MAX);
    const hearing = new Set<number>();
    const stops = new Map<number, () => Promise<void>>();
    let isStopped = false;
    const set = (member: number, isListening: boolean): void => {
      const before = hearing.size;
      if (isListening) hearing.add(member);
      else hearing.delete(member);
      if ((before === 0) !== (hearing.size === 0)) onListening(hearing.size > 0);
    };
    const deliver: OnWake = (text, why) => {
      const [id = ''] = text.split(' ', 1);
      if (heard.get(id)) return;
      heard.set(id, true);
      onWake(text.slice(id.length + 1), why);
    };
    const join = async (listener: WakeListener, member: number): Promise<void> => {
      const channel = (this.#members[member] as RedisMember).channelOf(inbox);
      const stop = await listener.listen(channel, deliver, (isListening) => set(member, isListening));
      stops.set(member, stop);
      set(member, true);
      if (isStopped) await stop();
    };
    const joinLater = (listener: WakeListener, member: number): void => {
      const again = (): void => {
        if (isStopped || this.#closed) return;
        join(listener, member).catch(() => joinLater(listener, member));
      };
      systemClock.timer(LISTEN_AGAIN_MS, again).keepAlive(false);
    };
    const joining = this.#listeners.map((listener, member) =>
      join(listener, member).catch((error: unknown) => {
        this.#note(error);
        joinLater(listener, member);
        throw error;
      }),
    );
    try {
      await Promise.any(joining);
    } catch (error) {
      // The caller listens again by itself: two would hear every wake-up twice, and try servers that are away twice as often.
      isStopped = true;
      throw error;
    }
    return async () => {
      isStopped = true;
      await Promise.all([...stops.values()].map((stop) => stop()));
    };
  }

  error(): unknown {
    return this.#lastError;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#listeners.map((listener) => listener.close()));
  }

  readonly #note = (error: unknown): void => {
    this.#lastError = error;
  };
}
