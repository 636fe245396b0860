/**
 * Locks in etcd, over its JSON gateway with `fetch`.
 *
 * Layout: below the prefix, `k/KEY` has the state of a lock as JSON, `w/INBOX/REASON` the last wake-up of an inbox, and
 * `clock` the offsets of the members' clocks (etcd-time.ts).
 *
 * Atomic: this process decides, with `decide`, and a transaction stores the result only if the key's `mod_revision` is
 * still the one decided on. A majority of the members stores it before etcd answers. Reads are linearizable.
 *
 * Clock: that of one member, from the header `Date` of the replies; others count by a stored offset (etcd-time.ts). Clocks
 * may be hours apart, but each has to run on.
 *
 * A lost reply (connection, leader or majority lost): the transaction may be applied or not, and the core asks again with
 * the same hold. One that is delayed fails by its condition, or because its etcd lease is gone (records.ts).
 */
import {
  InvalidArgumentError,
  keysInOrder,
  type Snapshot,
  type Store,
  snapshotOf,
} from '../../protocol/index.js';
import { checkOptionNames } from '../../protocol/option-names.js';
import type { FetchLike } from '../clients/fetch.js';
import { checkLayout } from '../clients/layout.js';
import { firstOf, listed } from '../clients/listed.js';
import { wakeListeners } from '../clients/wake-streams.js';
import type { CentralLayout } from '../compare-and-swap/central-layout.js';
import { CompareAndSwap } from '../compare-and-swap/compare-and-swap.js';
import { estimatedTraits } from '../compare-and-swap/estimated-traits.js';
import { type Fields, listedState, recordRegister } from '../compare-and-swap/records.js';
import { CLOCK_ERROR_MS, timeOf } from './etcd-time.js';
import { type Answer, Gateway } from './gateway.js';
import type { EtcdLayout } from './layouts.js';
import { probe } from './probe.js';
import { EtcdRecords, fieldsIn, nativeRecords } from './records.js';
import { encoded, RANGE, rangeOf, textOf } from './requests.js';
import { wakeStreamOn } from './wake-stream.js';

export type { FetchLike, RequestLike, ResponseLike } from '../clients/fetch.js';
export type { EtcdLayout } from './layouts.js';

/** Options of `etcdClient`. */
export interface EtcdClientOptions {
  /** Client URLs of the members, such as http://10.0.0.1:2379. When one does not answer, the next is asked. */
  readonly endpoints: readonly string[];
  /** With `password`: a user of etcd. Default none. */
  readonly user?: string;
  /** The password of that user. Default none. */
  readonly password?: string;
  /** Default: Node's `fetch`. One with an agent of its own for client certificates. */
  readonly fetch?: FetchLike;
}

/** Made by `etcdClient`. Stores on one client share its login, its choice of an endpoint and what it knows of the time. */
export interface EtcdClient {
  readonly endpoints: readonly string[];
}

/** Options of `etcdStore`. */
export interface EtcdStoreOptions {
  /**
   * What all keys of the store begin with. Default 'holdfast/', and 'locks/' with the layout. Processes that share locks use
   * the same.
   */
  readonly prefix?: string;
  /**
   * Shares locks with other software, in its records: a layout of `holdfast/etcd/layouts`. Waiters then poll, in no order.
   * Default none.
   */
  readonly layout?: EtcdLayout;
}

/** Keys that a list reads at once. */
const PAGE = 256;

/** A client for the gateway of an etcd cluster. It has nothing to close: the connections are those of `fetch`. */
export function etcdClient(options: EtcdClientOptions): EtcdClient {
  checkOptionNames(options, ['endpoints', 'user', 'password', 'fetch']);
  const { endpoints, user, password, fetch = globalThis.fetch } = options;
  if (!Array.isArray(endpoints) || endpoints.length === 0 || !endpoints.every(isEndpoint)) {
    throw new InvalidArgumentError(
      'endpoints has to be a list of client URLs of etcd, such as ["http://127.0.0.1:2379"], without user names.',
    );
  }
  if ((user === undefined) !== (password === undefined)) {
    throw new InvalidArgumentError('A user of etcd needs both user and password.');
  }
  if (typeof fetch !== 'function') throw new InvalidArgumentError("fetch has to be a function like Node's.");
  const urls = endpoints.map((url: string) => new URL(url).href.replace(/\/+$/, ''));
  // Called as a plain function: Node's `fetch` rejects another `this`.
  const call: FetchLike = (url, request) => fetch(url, request);
  return new Gateway({ endpoints: [...new Set(urls)], user, password, fetch: call });
}

/** Nothing is sent before the first command. */
export function etcdStore(client: EtcdClient, options: EtcdStoreOptions = {}): Store {
  const { gateway, prefix, central } = checked(client, options);
  const layout = central?.records ?? nativeRecords;
  const time = timeOf(gateway, prefix);
  const table = new EtcdRecords(gateway, time, prefix, layout);
  const listeners = wakeListeners(gateway.endpoints.length, wakeStreamOn(gateway, prefix));
  const { onServerLeft } = listeners;
  gateway.onLeft.add(onServerLeft);
  const queue = !central;
  const swap = new CompareAndSwap(recordRegister(table, layout), time, { name: 'etcd', queue });

  /** The locks whose ids begin with `start`, from the id `from` on. */
  async function* found(start: string, from: string): AsyncGenerator<readonly [key: string, Fields]> {
    const { range_end } = rangeOf(prefix + start);
    for (let key: string | null = encoded(prefix + from); key !== null; ) {
      const page: Answer = await gateway.call(RANGE, { key, range_end, limit: String(PAGE) });
      const { kvs = [], more } = page;
      for (const kv of kvs) {
        const name = layout.keyIn(textOf(kv.key).slice(prefix.length));
        if (name !== null) yield [name, fieldsIn(kv)];
      }
      const last = kvs.at(-1);
      key = more && last ? encoded(`${textOf(last.key)}\0`) : null;
    }
  }

  async function* snapshots(start: string, from: string): AsyncGenerator<Snapshot | null> {
    for await (const [key, fields] of found(start, from)) {
      yield snapshotOf(key, listedState(layout, key, fields), (await swap.now()).earliest);
    }
  }

  return {
    name: 'etcd',
    traits: estimatedTraits(CLOCK_ERROR_MS, { queue, push: queue }),
    apply: (commands) => swap.apply(commands),
    ...(central && { instances: central.instancesOn({ table, time, swap }) }),
    ...(queue && {
      async listen(inbox, onWake, onListening = () => undefined) {
        swap.checkOpen();
        return await listeners.listen(inbox, onWake, onListening);
      },
    }),
    read: (key) => swap.read(key),
    async *list(query) {
      swap.checkOpen();
      const { prefix: start, after, limit } = query;
      if (central) {
        // Ids have another order than keys.
        const all = new Map<string, Fields>();
        const from = layout.startOf(start);
        for await (const [key, fields] of found(from, from)) all.set(key, fields);
        const { earliest } = await swap.now();
        yield* listed(all, query, earliest, (key, fields) => listedState(layout, key, fields));
        return;
      }
      const [from = start] = keysInOrder([start, `${after ?? ''}\0`], { prefix: '' }).slice(-1);
      yield* firstOf(snapshots(layout.startOf(start), layout.startOf(from)), limit);
    },
    async probe() {
      swap.checkOpen();
      await time.sample();
      const { earliest } = await swap.now();
      return await probe(gateway, time, earliest, listeners.error() ?? table.error ?? time.error);
    },
    async close() {
      swap.close();
      listeners.close();
      gateway.onLeft.delete(onServerLeft);
    },
  };
}

function checked(client: EtcdClient, options: EtcdStoreOptions) {
  checkOptionNames(options, ['prefix', 'layout']);
  if (!(client instanceof Gateway)) {
    throw new InvalidArgumentError('The client is not one of etcd: pass etcdClient({ endpoints }).');
  }
  const central = checkLayout<CentralLayout<'etcd'>>(options.layout, 'etcd');
  const { prefix = central ? 'locks/' : 'holdfast/' } = options;
  if (typeof prefix !== 'string' || !/^[\x21-\x7e]+$/.test(prefix)) {
    throw new InvalidArgumentError(
      'The prefix of the keys has to be text without spaces, such as "holdfast/".',
    );
  }
  return { gateway: client, prefix, central };
}

function isEndpoint(text: unknown): boolean {
  if (typeof text !== 'string' || !URL.canParse(text)) return false;
  const { protocol, username, password, search } = new URL(text);
  return /^https?:$/.test(protocol) && `${username}${password}${search}` === '';
}
