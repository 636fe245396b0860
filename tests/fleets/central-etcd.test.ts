/** LockServiceCentral's records on etcd, and one identity at both services. */
import { createLocks, openStore } from 'holdfast';
import { type EtcdStoreOptions, etcdClient, etcdStore } from 'holdfast/etcd';
import { available } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { leaseOf, putValue } from '../etcd/store-scene.js';
import { centralCases, gate, type HeldStore, lateInstanceCase } from './cases-central.js';
import { EtcdFleet } from './central-etcd.js';
import { freshName, locksOf } from './fleet.js';

describe.runIf(available('etcd'))('the records of LockServiceCentral on etcd', () => {
  const fleet = new EtcdFleet();
  beforeAll(() => fleet.open());
  afterAll(() => fleet.close());

  centralCases(() => fleet);

  function heldStore(): HeldStore {
    const held = gate();
    const client = etcdClient({
      endpoints: [fleet.server.url],
      fetch: async (url, request) => {
        if (url.endsWith('/kv/txn')) await held.pass();
        return await fetch(url, request);
      },
    });
    const store = etcdStore(client, { prefix: fleet.prefix, layout: fleet.layout });
    return { store, ...held };
  }
  lateInstanceCase(() => fleet, heldStore);

  it('a lock of the service goes with its etcd lease, and one of ours stays with a longer one', async () => {
    const [theirs, ours] = [freshName(), freshName()];
    await fleet.foreign().acquire(theirs, 'somebody', 60_000);
    await using lease = await locksOf(fleet).acquire(ours);
    const idOf = (name: string): string => `${fleet.prefix}default:${name}`;
    const leases = await Promise.all([theirs, ours].map((name) => leaseOf(fleet.server.url, idOf(name))));
    expect(leases[0]).not.toBe('');
    expect(leases[1]).not.toBe('');
    // As etcd does when the lease ends.
    await fleet.forget(theirs);
    await (await locksOf(fleet).acquire(theirs)).release();
    expect(lease.held).toBe(true);
  });

  it('values that are no locks are refused by a command, and left out of a list', async () => {
    const name = freshName();
    for (const value of ['text', '[1]', '{"owner":"a"}', '{"owner":1,"instanceId":"b","expiry":"x"}']) {
      await putValue(fleet.server.url, `${fleet.prefix}default:${name}`, value);
      await expect(locksOf(fleet).tryAcquire(name)).rejects.toThrow(/is not a lock of LockServiceCentral/);
      const { instances } = fleet.store();
      const who = { owner: 'a', instanceId: 'b' };
      await expect(instances?.acquire(`default/${name}`, who, 9, 'x')).rejects.toThrow(/is not a lock/);
      await expect(instances?.release(`default/${name}`, who, 'x')).rejects.toThrow(/is not a lock/);
    }
    await putValue(
      fleet.server.url,
      `${fleet.prefix}a:b:c`,
      '{"owner":"a","instanceId":"b","expiry":99999999999}',
    );
    const keys: string[] = [];
    for await (const { key } of fleet.store().list({ prefix: '' })) keys.push(key);
    expect(keys).not.toContain(`default/${name}`);
    expect(keys.every((key) => /^default\/job-/.test(key))).toBe(true);
  });

  it('a list has the order of keys, though the ids have another', async () => {
    const prefix = `order-${process.pid}/`;
    const options: EtcdStoreOptions = { prefix, layout: fleet.layout };
    const store = etcdStore(etcdClient({ endpoints: [fleet.server.url] }), options);
    for (const namespace of ['abc', 'abc1', 'abc-1']) {
      await createLocks(store, { namespace }).acquire('job');
    }
    const keys: string[] = [];
    for await (const { key } of store.list({ prefix: 'abc' })) keys.push(key);
    expect(keys).toEqual(['abc-1/job', 'abc/job', 'abc1/job']);
    const some: string[] = [];
    for await (const { key } of store.list({ prefix: 'abc', after: 'abc-1/job', limit: 1 })) some.push(key);
    expect(some).toEqual(['abc/job']);
  });

  it('a record of a newer format ends a list where it is, and hides none of the others', async () => {
    const base = freshName();
    const locks = locksOf(fleet);
    for (const name of ['a', 'newer', 'z']) await locks.acquire(base + name);
    await fleet.edit(`${base}newer`, { holdfast: JSON.stringify({ version: 99 }) });
    const seen: string[] = [];
    const whole = async (): Promise<void> => {
      for await (const { key } of locks.list({ prefix: base })) seen.push(key);
    };
    await expect(whole()).rejects.toThrow(/has format 99/);
    expect(seen).toEqual([`${base}a`]);
    const behind: string[] = [];
    for await (const { key } of locks.list({ prefix: base, after: `${base}newer` })) behind.push(key);
    expect(behind).toEqual([`${base}z`]);
    await fleet.forget(`${base}newer`);
  });

  it('by URL, with a prefix that ends in no slash', async () => {
    const { host, port } = fleet.server;
    const name = freshName();
    const store = await openStore(`etcd://${host}:${port}?layout=lock-service-central&prefix=locks-`);
    const locks = createLocks(store);
    const lease = await locks.acquire(name);
    expect(await leaseOf(fleet.server.url, `locks-default:${name}`)).not.toBe('');
    await lease.release();
    await locks.close();
    const twice = openStore(`etcd://${host}:${port}/locks?prefix=locks-`);
    await expect(twice).rejects.toThrow('given twice');
    const unknown = openStore(`etcd://${host}:${port}/locks?layout=other`);
    await expect(unknown).rejects.toThrow('There is no layout "other" for etcd');
  });
});
