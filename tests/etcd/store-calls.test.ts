/** What an operation costs, and what it leaves in etcd. */

import { createLocks } from 'holdfast';
import { etcdClient, etcdStore, type FetchLike } from 'holdfast/etcd';
import type { Command, Reply, Store } from 'holdfast/protocol';
import { available, type EtcdServer, startEtcd } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  ask,
  claimOf,
  leaseOf,
  putValue,
  releaseOf,
  renewOf,
  say,
  type Tapped,
  tapped,
  valuesOf,
} from './store-scene.js';

const WRITE = 'kv/txn';
const READ = 'kv/range';

describe.runIf(available('etcd'))('calls to etcd', () => {
  let server: EtcdServer;
  let tap: Tapped;
  let store: Store;
  let other: Store;
  let used = 0;
  const prefix = `calls-${process.pid}-${Date.now()}/`;

  beforeAll(async () => {
    server = await startEtcd();
    tap = tapped({ endpoints: [server.url] }, { prefix });
    store = tap.store;
    other = etcdStore(etcdClient({ endpoints: [server.url] }), { prefix });
    // The clocks are compared, and an etcd lease is made, once.
    await say(store, claimOf('first', 'p'));
    await say(other, claimOf('second', 'p'));
  });

  afterAll(async () => {
    await Promise.all([store?.close(), other?.close()]);
    await server?.stop();
  });

  const newKey = (): string => `k${++used}`;

  async function callsOf(
    command: Command,
  ): Promise<{ readonly reply: Reply; readonly calls: readonly string[] }> {
    tap.calls.length = 0;
    const reply = await say(store, command);
    return { reply, calls: [...tap.calls] };
  }

  it('one for a key never used, its renewals, its release, and the next claim of this process', async () => {
    const claim = claimOf(newKey(), 'p');
    const again = { ...claim, hold: { process: 'p', number: 2 } };
    for (const [command, kind] of [
      [claim, 'granted'],
      [renewOf({ ...claim, ttlMs: 11_000 }), 'renewed'],
      [renewOf({ ...claim, ttlMs: 12_000 }), 'renewed'],
      [releaseOf(claim), 'released'],
      [again, 'granted'],
      [releaseOf(again), 'released'],
    ] as const) {
      expect(await callsOf(command)).toMatchObject({ reply: { kind }, calls: [WRITE] });
    }
  });

  it('one for a busy try: the transaction that does not apply returns the record', async () => {
    const key = newKey();
    await say(other, claimOf(key, 'other'));
    const claim = claimOf(key, 'p', { queue: false });
    expect(await callsOf(claim)).toMatchObject({ reply: { kind: 'busy' }, calls: [WRITE] });
    expect(await callsOf(claim)).toMatchObject({ reply: { kind: 'busy' }, calls: [READ] });
  });

  it('two for a key that another process used last: the guess, and the write on what was there', async () => {
    const key = newKey();
    const theirs = claimOf(key, 'other');
    await say(other, theirs);
    await say(other, releaseOf(theirs));
    expect(await callsOf(claimOf(key, 'p'))).toMatchObject({
      reply: { kind: 'granted' },
      calls: [WRITE, WRITE],
    });
  });

  it('a release wakes the next in the same transaction', async () => {
    const key = newKey();
    const heard: string[] = [];
    const stop = await other.listen?.('theirs', (woken, why) => heard.push(`${why}:${woken}`));
    const claim = claimOf(key, 'p');
    await say(store, claim);
    await say(other, claimOf(key, 'other', { inbox: 'theirs' }));
    // The release of a record that changed: one call shows it, and another writes and wakes.
    const { calls } = await callsOf(releaseOf(claim));
    expect(calls).toEqual([WRITE, WRITE]);
    await expect.poll(() => heard).toContain(`turn:${key}`);
    await stop?.();
  });

  it('records and wake-ups are attached to an etcd lease that outlives them, and do not pile up', async () => {
    const key = newKey();
    const claim = claimOf(key, 'p', { ttlMs: 600_000, inbox: 'mine' });
    await say(store, claim);
    for (let rounds = 0; rounds < 5; rounds++) {
      await say(other, claimOf(key, `other${rounds}`, { queue: true, inbox: 'theirs' }));
    }
    const kept = await leaseOf(server.url, `${prefix}k/${key}`);
    const { grantedTTL } = await ask<{ grantedTTL: string }>(server.url, '/v3/lease/timetolive', {
      ID: kept,
    });
    expect(Number(grantedTTL)).toBeGreaterThan(630);
    const wakes = await valuesOf(server.url, `${prefix}w/`);
    expect([...wakes.keys()].filter((name) => name.includes('/mine/'))).toEqual([`${prefix}w/mine/waiting`]);
    for (const name of wakes.keys()) expect(await leaseOf(server.url, name)).not.toBe('');
  });

  it('F10: an etcd lease that is gone keeps a late write from bringing a record back, and another is made', async () => {
    const key = newKey();
    const claim = claimOf(key, 'p');
    await say(store, claim);
    const ID = await leaseOf(server.url, `${prefix}k/${key}`);
    await ask(server.url, '/v3/lease/revoke', { ID });
    expect((await valuesOf(server.url, `${prefix}k/${key}`)).size).toBe(0);
    const fresh = await callsOf(claimOf(newKey(), 'p'));
    expect(fresh).toMatchObject({ reply: { kind: 'granted' }, calls: [WRITE, 'lease/grant', WRITE] });
  });

  it.each([408, 429])(
    'a proxy that answers %i for a moment is waited for, and no reason to give up',
    async (status) => {
      let refusals = 3;
      const through: FetchLike = async (url, request) =>
        refusals-- > 0 ? new Response('slow down', { status }) : await fetch(url, request);
      const client = etcdClient({ endpoints: [server.url], fetch: through });
      const locks = createLocks(etcdStore(client, { prefix }));
      await (await locks.acquire(`proxied-${status}`, { wait: 20_000 })).release();
      expect(refusals).toBeLessThan(0);
      await locks.close();
    },
  );

  it('a value that is not a lock is refused by a command, and left out of a list', async () => {
    const key = newKey();
    await putValue(server.url, `${prefix}k/${key}`, 'somebody else’s');
    await expect(say(store, claimOf(key, 'p'))).rejects.toThrow(/is not a lock/);
    const listed: string[] = [];
    for await (const { key: name } of store.list({ prefix: '' })) listed.push(name);
    expect(listed).not.toContain(key);
    expect(listed.length).toBeGreaterThan(2);
  });

  it('a list goes through many pages, in the order of keys, from any place on', async () => {
    const names = Array.from({ length: 600 }, (_, at) => `page/${String(at).padStart(4, '0')}é`);
    for (let at = 0; at < names.length; at += 100) {
      await Promise.all(
        store.apply(names.slice(at, at + 100).map((name) => claimOf(name, 'p', { ttlMs: 600_000 }))),
      );
    }
    const listed: string[] = [];
    for await (const { key } of store.list({ prefix: 'page/' })) listed.push(key);
    expect(listed).toEqual(names);
    const some: string[] = [];
    for await (const { key } of store.list({ prefix: 'page/', after: names[299] ?? '', limit: 5 })) {
      some.push(key);
    }
    expect(some).toEqual(names.slice(300, 305));
  });
});
