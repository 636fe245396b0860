import { connect } from '@nats-io/transport-node';
import { available, type NatsServer, startNats, startNatsCluster } from 'holdfast-test-servers';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createLocks } from '../../packages/holdfast/src/locks.js';
import { migrationOf, openStore } from '../../packages/holdfast/src/open-store.js';
import { StoreError, UnsupportedError } from '../../packages/holdfast/src/protocol/index.js';
import type { Store } from '../../packages/holdfast/src/protocol/store.js';
import { importError } from '../../packages/holdfast/src/stores/clients/opened-client.js';
import { openStore as openNats } from '../../packages/holdfast/src/stores/nats/from-url.js';

const opened: Store[] = [];

async function open(url: string): Promise<Store> {
  const store = await openStore(url);
  opened.push(store);
  return store;
}

async function failureOf(store: Store): Promise<string> {
  return store.read('job').then(
    () => 'no failure',
    (error: Error) => error.message,
  );
}

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
});

describe.runIf(available('nats', { own: true }))('nats:', () => {
  let server: NatsServer;

  beforeAll(async () => {
    server = await startNats({ own: true });
  });
  afterAll(async () => server?.stop());

  async function streams(): Promise<readonly string[]> {
    const connection = await connect({ servers: server.url, reconnect: false });
    try {
      const answer = await connection.request('$JS.API.STREAM.NAMES', '');
      return answer.json<{ streams: string[] | null }>().streams ?? [];
    } finally {
      await connection.close();
    }
  }

  it('keeps locks in the bucket that the URL names, made by a migration or with the first lock', async () => {
    const migration = await migrationOf(`${server.url}/made`);
    expect(migration).toMatchObject({ kind: 'bucket', name: 'made' });
    expect(await migration.apply()).toEqual({ from: 0, to: 1, notes: [] });
    expect(await migration.apply()).toEqual({ from: 1, to: 1, notes: [] });
    for (const bucket of ['made', 'not-made']) {
      const locks = createLocks(await open(`${server.url}/${bucket}`));
      await locks.withLock('job', (lease) => expect(lease.held).toBe(true));
      await locks.close({ drain: 0 });
    }
    expect(await streams()).toEqual(expect.arrayContaining(['KV_made', 'KV_not-made']));
    expect(await streams()).not.toContain('KV_holdfast');
  });

  it('prints its bucket as a configuration that makes the same one', async () => {
    const migration = await migrationOf(`${server.url}/printed`);
    const connection = await connect({ servers: server.url, reconnect: false });
    const answer = await connection.request('$JS.API.STREAM.CREATE.KV_printed', migration.script);
    await connection.close();
    expect(answer.json()).not.toHaveProperty('error');
    expect(await migration.apply()).toEqual({ from: 1, to: 1, notes: [] });
  });

  it('wakes a waiter of another store, and so heard it through the connection that it made', async () => {
    const [one, two] = [createLocks(await open(server.url)), createLocks(await open(server.url))];
    const lease = await one.acquire('job');
    const met = new Promise((resolve) => two.on('waiting', resolve));
    const waiting = two.acquire('job');
    await met;
    await lease.release();
    expect((await waiting).token).toBeGreaterThan(lease.token);
    await one.close();
    await two.close();
  });

  it('ends with the store the connection that was made for it', async () => {
    const store = await open(server.url);
    await store.read('job');
    await store.close();
    await store.close();
    await expect(store.read('job')).rejects.toThrow(UnsupportedError);
  });

  it('goes on by itself when the server was restarted, though it asks with a password', async () => {
    const guarded = await startNats({ own: true, login: { user: 'a:b', password: 'p@ss/w:rd?#%' } });
    try {
      const [user, password] = [encodeURIComponent('a:b'), encodeURIComponent('p@ss/w:rd?#%')];
      const locks = createLocks(await open(`nats://${user}:${password}@${guarded.host}:${guarded.port}`));
      await locks.withLock('before', () => undefined);
      await guarded.restart();
      await using lease = await locks.acquire('after', { wait: 15_000 });
      expect(lease.held).toBe(true);
      await locks.close({ drain: 0 });
      const refused = await open(`nats://me:hunter2@${guarded.host}:${guarded.port}`);
      expect(await failureOf(refused)).toMatch(/refuses this user name and password/);
      expect(await failureOf(refused)).not.toContain('hunter2');
    } finally {
      await guarded.stop();
    }
  });

  it('opens though nobody is there, says so in words, and works once somebody is', async () => {
    await server.kill();
    const began = performance.now();
    const store = await open(server.url);
    expect(performance.now() - began).toBeLessThan(10_000);
    expect(await failureOf(store)).toMatch(/^nothing listens at .* is the server running/);
    const locks = createLocks(store);
    const failed: unknown = await locks.acquire('job', { wait: 300 }).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(StoreError);
    expect((failed as StoreError).cause).toMatchObject({
      message: expect.stringMatching(/^nothing listens/),
    });
    await server.restart();
    await using lease = await locks.acquire('job', { wait: 15_000 });
    expect(lease.held).toBe(true);
    await locks.close({ drain: 0 });
  });

  it('says that a connection broke while it is broken', async () => {
    const store = await open(server.url);
    await store.read('job');
    await server.kill();
    await expect.poll(() => failureOf(store)).toMatch(/connection to .* broke/);
    await server.restart();
    await expect.poll(() => failureOf(store)).toBe('no failure');
  });

  it('does not wait for ever for a server that hangs, neither on opening nor on closing', async () => {
    const store = await open(server.url);
    await store.read('job');
    await server.pause();
    try {
      await expect(store.read('job')).rejects.toThrow(/does not answer|broke/);
      const other = await openStore(server.url);
      await expect(other.read('job')).rejects.toThrow();
      await other.close();
      await store.close();
    } finally {
      await server.resume();
    }
  });

  it('says that there is no TLS', async () => {
    expect(await failureOf(await open(server.url.replace('nats:', 'nats+tls:')))).toMatch(
      /does not speak TLS/,
    );
  });

  it('says that there is no JetStream for an account', async () => {
    const accounts = `{
      WITH: { jetstream: enabled, users: [{ user: with, password: with }] },
      WITHOUT: { users: [{ user: without, password: without }] },
    }`;
    const divided = await startNats({ config: { accounts, no_auth_user: 'with' } });
    try {
      expect(await failureOf(await open(divided.url))).toBe('no failure');
      const without = divided.url.replace('nats://', 'nats://without:without@');
      expect(await failureOf(await open(without))).toMatch(/has no JetStream for this account/);
    } finally {
      await divided.stop();
    }
  });
});

describe.runIf(available('nats', { own: true }))('nats: a cluster', () => {
  it('keeps locks on three servers, and goes on at another when one is lost', async () => {
    const cluster = await startNatsCluster();
    try {
      const hosts = cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(',');
      const url = `nats://${hosts}/locks?replicas=3`;
      expect(await (await migrationOf(url)).apply()).toEqual({ from: 0, to: 1, notes: [] });
      const store = await open(url);
      const locks = createLocks(store);
      const { findings } = await locks.probe();
      expect(findings.map(({ text }) => text).join()).toMatch(/on a majority of 3 servers/);
      await locks.withLock('before', () => undefined);
      await cluster.nodes[0]?.kill();
      await using lease = await locks.acquire('after', { wait: 25_000 });
      expect(lease.held).toBe(true);
      await locks.close({ drain: 0 });
    } finally {
      await cluster.stop();
    }
  }, 60_000);
});

describe('nats: without a server', () => {
  it('a migration says that nobody is there', async () => {
    const applying = (await migrationOf('nats://me:secret@127.0.0.1:1/locks')).apply();
    await expect(applying).rejects.toThrow(/^the bucket was not made: nothing listens at 127\.0\.0\.1:1/);
    await expect(applying).rejects.toThrow(StoreError);
  });

  it('ends at once, though it is still trying', async () => {
    const store = await openStore('nats://127.0.0.1:1');
    const began = performance.now();
    await store.close();
    expect(performance.now() - began).toBeLessThan(5_000);
  });

  it('names all servers that were tried', async () => {
    const store = await open('nats://127.0.0.1:1,127.0.0.1:2');
    expect(await failureOf(store)).toMatch(/nothing listens at 127\.0\.0\.1:1, 127\.0\.0\.1:2/);
  });

  it('misses the package of the client in one line', async () => {
    const load = async (): Promise<never> => {
      const error = new Error("Cannot find package '@nats-io/transport-node' imported from here");
      throw importError('@nats-io/transport-node', Object.assign(error, { code: 'ERR_MODULE_NOT_FOUND' }));
    };
    const opening = openNats('nats', '//h', [{ name: '@nats-io/transport-node', load }]);
    await expect(opening).rejects.toThrow(
      /^A client package for NATS is needed, and none is installed: npm install @nats-io\/transport-node\.$/,
    );
  });
});
