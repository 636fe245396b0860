/** etcd as the store's tests need it: a look at its keys, and stores whose calls can be seen and broken. */
import { WAITERS_MAX } from 'holdfast/compare-and-swap';
import {
  type EtcdClient,
  type EtcdClientOptions,
  type EtcdStoreOptions,
  etcdClient,
  etcdStore,
  type FetchLike,
} from 'holdfast/etcd';
import type { Store } from 'holdfast/protocol';
import type { Harness } from 'holdfast/testkit';

export { claimOf, releaseOf, renewOf, runSuite, say } from '../store-talk.js';

const encoded = (text: string): string => Buffer.from(text).toString('base64');
const textOf = (base64 = ''): string => Buffer.from(base64, 'base64').toString();

export async function ask<T>(url: string, path: string, body: object = {}, login = ''): Promise<T> {
  const headers = login === '' ? {} : { authorization: login };
  const response = await fetch(url + path, { method: 'POST', body: JSON.stringify(body), headers });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${text}`);
  return JSON.parse(text) as T;
}

interface Ranged {
  readonly header: { readonly revision: string };
  readonly kvs?: readonly { readonly key: string; readonly value?: string; readonly lease?: string }[];
}

/** Everything below a prefix. */
export async function valuesOf(url: string, prefix: string): Promise<ReadonlyMap<string, string>> {
  const end = prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
  const request = { key: encoded(prefix), range_end: encoded(end) };
  const { kvs = [] } = await ask<Ranged>(url, '/v3/kv/range', request);
  return new Map(kvs.map(({ key, value }) => [textOf(key), textOf(value)]));
}

export async function leaseOf(url: string, key: string): Promise<string> {
  const { kvs = [] } = await ask<Ranged>(url, '/v3/kv/range', { key: encoded(key) });
  return kvs[0]?.lease ?? '';
}

export const putValue = (url: string, key: string, value: string): Promise<Ranged> =>
  ask(url, '/v3/kv/put', { key: encoded(key), value: encoded(value) });

export const deleteKey = (url: string, key: string): Promise<Ranged> =>
  ask(url, '/v3/kv/deleterange', { key: encoded(key) });

const CLIENTS = 6;

/**
 * Clients that know the time well. The header `Date` has whole seconds, so a client knows it within a second at first, and
 * exactly once it has heard a second change.
 */
export async function warmClients(endpoints: readonly string[]): Promise<readonly EtcdClient[]> {
  const clients = Array.from({ length: CLIENTS }, () => etcdClient({ endpoints }));
  await Promise.all(
    clients.map(async (client) => {
      const store = etcdStore(client);
      const until = performance.now() + 1_300;
      while (performance.now() < until) {
        await store.read('nobody');
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      await store.close();
    }),
  );
  return clients;
}

export function harnessOf(name: string, url: () => string, clients: () => readonly EtcdClient[]): Harness {
  let opened = 0;
  const nameOf = (key: string): string => `holdfast/k/${key}`;
  return {
    name,
    // The error of the time of two clients that know it well, on a busy machine.
    doubtMs: 500,
    lineMax: WAITERS_MAX,
    open: async () => etcdStore(clients()[opened++ % CLIENTS] as EtcdClient),
    forget: async (key) => void (await deleteKey(url(), nameOf(key))),
    spoil: async (key) => void (await putValue(url(), nameOf(key), '{"version":99,"anything":"else"}')),
  };
}

export interface Tapped {
  readonly store: Store;
  /** The paths of all calls since it was last emptied, without the watch. */
  readonly calls: string[];
  /** Called before each call; what it throws is its outcome. */
  before: (path: string) => void | Promise<void>;
  /** Called after each answer, before it is returned. */
  after: (path: string, body: string) => void | Promise<void>;
}

/** A store that one can look into, and break. */
export function tapped(client: Omit<EtcdClientOptions, 'fetch'>, options: EtcdStoreOptions = {}): Tapped {
  const through: FetchLike = async (url, request) => {
    const path = new URL(url).pathname.replace('/v3/', '');
    if (path !== 'watch') tap.calls.push(path);
    await tap.before(path);
    const response = await fetch(url, request);
    if (path !== 'watch') await tap.after(path, request.body ?? '');
    return response;
  };
  const tap: Tapped = {
    store: etcdStore(etcdClient({ ...client, fetch: through }), options),
    calls: [],
    before: () => undefined,
    after: () => undefined,
  };
  return tap;
}
