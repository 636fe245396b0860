/** What a user of NATS has to be allowed, and in which words it hears that it is not. */
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { createLocks, UnsupportedError } from 'holdfast';
import { createBucket, natsStore } from 'holdfast/nats';
import { available, type NatsServer, startNats } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claimOf, releaseOf, say } from './store-scene.js';

const LOOK = '"$JS.API.STREAM.INFO.KV_holdfast", "$JS.API.STREAM.MSG.GET.KV_holdfast"';
const NEEDED = `${LOOK}, "$JS.API.STREAM.MSG.DELETE.KV_holdfast", "$KV.holdfast.>"`;
const HINTS = '"_HOLDFAST.holdfast.>"';

function user(name: string, publish: string, subscribe: string): string {
  return `{ user: ${name}, password: pw, permissions: { publish: [${publish}], subscribe: [${subscribe}] } }`;
}

const USERS = [
  '{ user: admin, password: pw }',
  user('least', `${NEEDED}, ${HINTS}`, `"_INBOX.>", ${HINTS}`),
  user('deaf', NEEDED, '"_INBOX.>"'),
  user('reader', LOOK, '"_INBOX.>"'),
  user('nobody', '"other.>"', '"_INBOX.>"'),
];
const ACCOUNTS = `{
  WITH: { jetstream: enabled, users: [${USERS.join(', ')}] }
  WITHOUT: { users: [{ user: without, password: pw }] }
}`;

describe.runIf(available('nats'))('permissions on NATS', () => {
  let server: NatsServer;
  const opened: NatsConnection[] = [];

  beforeAll(async () => {
    server = await startNats({
      login: { user: 'admin', password: 'pw' },
      config: { authorization: '{}', accounts: ACCOUNTS },
    });
    await createBucket(await as('admin'));
  });

  afterAll(async () => {
    await Promise.all(opened.map((connection) => connection.close()));
    await server?.stop();
  });

  async function as(name: string): Promise<NatsConnection> {
    const { host, port } = server;
    const connection = await connect({ servers: `${host}:${port}`, user: name, pass: 'pw' });
    opened.push(connection);
    return connection;
  }

  it('the least privilege of the page is enough for everything but making the bucket', async () => {
    const [here, there] = [natsStore(await as('least')), natsStore(await as('least'))];
    const [locks, waiting] = [createLocks(here), createLocks(there)];
    const held = await locks.acquire('k', { ttl: 60_000 });
    const since = performance.now();
    const next = waiting.acquire('k', { wait: 20_000 });
    await new Promise((resolve) => setTimeout(resolve, 200));
    await held.release();
    await (await next).release();
    expect(performance.now() - since).toBeLessThan(10_000);
    const { findings } = await here.probe();
    expect(findings.filter(({ text }) => /hints|deleted/i.test(text))).toEqual([]);
    for await (const view of here.list({ prefix: '' })) expect(view.key).toBeTypeOf('string');
    await Promise.all([locks.close({ drain: 0 }), waiting.close({ drain: 0 })]);
  });

  it('a client that may not write is told so, with the name of the permission', async () => {
    const store = natsStore(await as('reader'));
    const claim = say(store, claimOf('k2', 'p'));
    await expect(claim).rejects.toBeInstanceOf(UnsupportedError);
    await expect(claim).rejects.toThrow(/lacks a permission.*publish.*\$KV\.holdfast\./s);
    await expect(createLocks(store).acquire('k2', { wait: 20_000 })).rejects.toThrow(/lacks a permission/);
  });

  it('a client that may not read is told so too', async () => {
    const store = natsStore(await as('nobody'));
    await expect(say(store, claimOf('k', 'p'))).rejects.toThrow(
      /lacks a permission.*STREAM\.INFO\.KV_holdfast/s,
    );
    await expect(store.probe()).rejects.toBeInstanceOf(UnsupportedError);
  });

  it('a client that may not receive wake-ups is served by polling, and probe says what is missing', async () => {
    const store = natsStore(await as('deaf'));
    await expect(store.listen?.('inbox', () => undefined)).rejects.toThrow(
      /may not receive wake-ups.*_HOLDFAST\.holdfast\.>/s,
    );
    const { findings } = await store.probe();
    expect(findings.map(({ text }) => text).join(' ')).toMatch(
      /Wake-ups may not be published.*_HOLDFAST\.holdfast\.>/s,
    );
    const [locks, other] = [createLocks(store), createLocks(natsStore(await as('deaf')))];
    const held = await locks.acquire('k3', { ttl: 60_000 });
    const next = other.acquire('k3', { wait: 20_000 });
    await new Promise((resolve) => setTimeout(resolve, 100));
    await held.release();
    await (await next).release();
    await Promise.all([locks.close({ drain: 0 }), other.close({ drain: 0 })]);
  });

  it('an account without JetStream is told that it needs it', async () => {
    const store = natsStore(await as('without'));
    await expect(say(store, claimOf('k', 'p'))).rejects.toThrow(/JetStream.*not enabled/s);
  });

  it('a store that was refused works as soon as it may', async () => {
    const store = natsStore(await as('least'), { bucket: 'holdfast' });
    const claim = claimOf('again', 'p');
    expect((await say(store, claim)).kind).toBe('granted');
    expect((await say(store, releaseOf(claim))).kind).toBe('released');
    await store.close();
  });
});
