/** Writes whose answers come over a subscription of the store's own: as sure as those of `request`, and as clear. */
import { connect, type Msg, type NatsConnection, type SubscriptionOptions } from '@nats-io/transport-node';
import { createLocks, StoreError, UnsupportedError } from 'holdfast';
import { createBucket, natsStore } from 'holdfast/nats';
import type { Store } from 'holdfast/protocol';
import { available, type NatsServer, startNats } from 'holdfast-test-servers';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { claimOf, connectTo, recordOf, releaseOf, say } from './store-scene.js';

const USERS = `[
  { user: admin, password: pw },
  { user: own, password: pw, permissions: { publish: ">", subscribe: ["_MINE.>", "_HOLDFAST.>"] } }
]`;

interface Watched {
  readonly connection: NatsConnection;
  /** The subjects of writes, and how they went. */
  readonly writes: ['request' | 'publish', string][];
  /** Whether writes are published to nobody. */
  loses: boolean;
  /** Whether the server refuses to let answers be heard. */
  refuses: boolean;
}

const REFUSAL = new Error('Permissions Violation for Subscription to "_INBOX.it.*"');

/** A connection that tells how writes go, and can lose them. */
function watched(connection: NatsConnection): Watched {
  const watch: Watched = {
    writes: [],
    loses: false,
    refuses: false,
    connection: new Proxy(connection, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        if (name === 'subscribe' && watch.refuses) {
          return (subject: string, options: SubscriptionOptions) => {
            if (!subject.startsWith('_INBOX.')) return target.subscribe(subject, options);
            queueMicrotask(() => options.callback?.(REFUSAL, {} as Msg));
            return { unsubscribe: () => undefined };
          };
        }
        if (name !== 'request' && name !== 'publish') return value.bind(target);
        return (...args: unknown[]) => {
          const isWrite = String(args[0]).startsWith('$KV.') && !String(args[0]).endsWith('=clock');
          if (isWrite) watch.writes.push([name, String(args[0])]);
          if (isWrite && name === 'publish' && watch.loses) return undefined;
          return value.apply(target, args);
        };
      },
    }),
  };
  return watch;
}

describe.runIf(available('nats'))('answers to writes in NATS', () => {
  let server: NatsServer;
  let connection: NatsConnection;
  const opened: Store[] = [];

  beforeAll(async () => {
    server = await startNats({
      own: true,
      config: { accounts: `{ ALL: { jetstream: enabled, users: ${USERS} } }`, no_auth_user: 'admin' },
    });
    connection = await connectAs('admin');
  });

  afterEach(async () => {
    for (const store of opened.splice(0)) await store.close();
  });

  afterAll(async () => {
    await connection?.close();
    await server?.stop();
  });

  function connectAs(user: string, more: object = {}): Promise<NatsConnection> {
    return connect({ servers: server.url, user, pass: 'pw', noAsyncTraces: true, reconnect: false, ...more });
  }

  function storeOn(on: NatsConnection): Store {
    const store = natsStore(on);
    opened.push(store);
    return store;
  }

  it('the first goes by request and the next ones do not, one message each', async () => {
    const watch = watched(connection);
    const store = storeOn(watch.connection);
    for (const number of [1, 2]) {
      const claim = claimOf('plain', 'p', { hold: { process: 'p', number } });
      expect(await say(store, claim)).toMatchObject({ kind: 'granted' });
      expect(await say(store, releaseOf(claim))).toMatchObject({ kind: 'released' });
    }
    expect(watch.writes.map(([how]) => how)).toEqual(['request', 'publish', 'publish', 'publish']);
  });

  it('a write that another one overtook is decided again on what is there', async () => {
    const [mine, other] = [storeOn(connection), storeOn(connection)];
    const claim = claimOf('overtaken', 'mine');
    await say(mine, claimOf('warm', 'mine'));
    expect(await say(mine, claim)).toMatchObject({ kind: 'granted' });
    await say(mine, releaseOf(claim));
    expect(await say(other, claimOf('overtaken', 'other'))).toMatchObject({ kind: 'granted' });
    const again = claimOf('overtaken', 'mine', { hold: { process: 'mine', number: 2 }, queue: false });
    expect(await say(mine, again)).toMatchObject({ kind: 'busy' });
  });

  it('F4: one whose answer is missing is said again by request, and is granted once', async () => {
    const watch = watched(connection);
    const store = storeOn(watch.connection);
    const locks = createLocks(store, { ttl: 10_000 });
    await (await locks.acquire('first')).release();
    watch.loses = true;
    watch.writes.length = 0;
    const lease = await locks.acquire('lost');
    expect(watch.writes.map(([how]) => how)).toEqual(['publish', 'request']);
    watch.loses = false;
    await lease.release();
    await locks.close({ drain: 0 });
    expect((await recordOf(connection, 'default/lost'))?.text).not.toContain('"h":');
  });

  it('a bucket that is gone is made again, though nobody answered', async () => {
    const store = storeOn(connection);
    await say(store, claimOf('before', 'p'));
    await say(store, releaseOf(claimOf('before', 'p')));
    await connection.request('$JS.API.STREAM.DELETE.KV_holdfast');
    const locks = createLocks(store, { ttl: 10_000 });
    const lease = await locks.acquire('after', { wait: '10s' });
    await lease.release();
    await locks.close({ drain: 0 });
  });

  it('a connection that was closed is told in words, also to who waits for an answer', async () => {
    const own = await connectAs('admin');
    const watch = watched(own);
    const store = storeOn(watch.connection);
    await say(store, claimOf('closing', 'p'));
    watch.loses = true;
    const waiting = say(store, claimOf('never-answered', 'p'));
    waiting.catch(() => 'looked at below');
    await own.close();
    watch.loses = false;
    await expect(say(store, claimOf('later', 'p'))).rejects.toThrow(/NATS did not answer .*clos/i);
    await store.close();
    await expect(waiting).rejects.toThrow(/did not answer/);
    await expect(say(store, claimOf('later', 'p'))).rejects.toThrow(UnsupportedError);
  });

  it('they come to the inbox prefix of the connection', async () => {
    await createBucket(connection);
    const own = await connectAs('own', { inboxPrefix: '_MINE' });
    const watch = watched(own);
    const locks = createLocks(natsStore(watch.connection), { ttl: 10_000 });
    for (let turn = 0; turn < 3; turn++) await (await locks.acquire('prefixed')).release();
    expect(watch.writes.map(([how]) => how)).toEqual(['request', ...Array(5).fill('publish')]);
    await locks.close({ drain: 0 });
    await own.close();
  });

  it('where they may not be heard, all goes by request, and the probe says so', async () => {
    const watch = watched(connection);
    watch.refuses = true;
    const store = storeOn(watch.connection);
    const locks = createLocks(store, { ttl: 10_000 });
    for (let turn = 0; turn < 3; turn++) await (await locks.acquire('unheard')).release();
    expect(watch.writes.slice(-3).map(([how]) => how)).toEqual(['request', 'request', 'request']);
    const { findings } = await store.probe();
    expect(findings.map(({ text }) => text).join('\n')).toMatch(
      /Answers to writes need one subscription each/,
    );
    await locks.close({ drain: 0 });
  });

  it('answers are awaited through a reconnection', async () => {
    const own = await connectTo(server.url);
    const locks = createLocks(natsStore(own), { ttl: 10_000 });
    await (await locks.acquire('here')).release();
    const restarted = server.restart();
    const lease = await locks.acquire('there', { wait: '20s' }).catch((error: unknown) => {
      // It may have been asked while nobody was there for the whole of its wait.
      if (!(error instanceof StoreError)) throw error;
      return null;
    });
    await restarted;
    await lease?.release();
    await (await locks.acquire('there', { wait: '20s' })).release();
    await locks.close({ drain: 0 });
    await own.close();
  }, 60_000);
});
