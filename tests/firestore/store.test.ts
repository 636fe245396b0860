/** What is special about Firestore: ids, preconditions, wake-ups, and what a caller can get wrong. */
import type { Firestore } from '@google-cloud/firestore';
import { createLocks, InvalidArgumentError, openStore, StoreError, UnsupportedError } from 'holdfast';
import { firestoreStore } from 'holdfast/firestore';
import { lockServiceCentral } from 'holdfast/firestore/layouts';
import type { Store } from 'holdfast/protocol';
import { available, type FirestoreServer, startFirestore } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { claimOf, clientOf, newCollection, releaseOf, renewOf, say, warmClients } from './store-scene.js';

async function keysOf(store: Store, prefix: string, more: object = {}): Promise<readonly string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list({ prefix, ...more })) keys.push(key);
  return keys;
}

describe.runIf(available('firestore'))('locks in Firestore', () => {
  let server: FirestoreServer;
  let clients: readonly Firestore[] = [];
  let client: Firestore;

  beforeAll(async () => {
    server = await startFirestore();
    clients = await warmClients(server, 2);
    client = clients[0] ?? clientOf(server);
  });

  afterAll(async () => {
    await Promise.all(clients.map((one) => one.terminate()));
    await server?.stop();
  });

  it('reserved and awkward ids are escaped, and lists give the keys back, by prefix', async () => {
    const collection = newCollection();
    const store = firestoreStore(client, { collection });
    const keys = ['.', '..', '__a__', '__a', '~1', 'a/b', 'a/b~', 'a~1b', '🔒/ü', 'a%2Fb', '/'];
    for (const key of keys) {
      expect((await say(store, claimOf(key, 'p', { ttlMs: 60_000 }))).kind, key).toBe('granted');
    }
    expect([...(await keysOf(store, ''))].sort()).toEqual([...keys].sort());
    expect(await keysOf(store, 'a/')).toEqual(['a/b', 'a/b~']);
    expect(await keysOf(store, '🔒')).toEqual(['🔒/ü']);
    expect(await keysOf(store, '_')).toEqual(['__a', '__a__']);
    expect(await keysOf(store, 'a', { after: 'a/b', limit: 2 })).toEqual(['a/b~', 'a~1b']);
    const ids = (await client.collection(collection).get()).docs.map(({ id }) => id);
    expect(ids).toContain('~2.');
    expect(ids).toContain('~3_a__');
    await store.close();
  });

  it('a client with `useBigInt` reads documents of LockServiceCentral', async () => {
    const other = clientOf(server, { useBigInt: true });
    const place = { collection: newCollection(), layout: lockServiceCentral };
    const one = firestoreStore(client, place);
    const two = firestoreStore(other, place);
    expect((await say(one, claimOf('default/big', 'p'))).kind).toBe('granted');
    expect((await say(two, claimOf('default/big', 'q'))).kind).toBe('busy');
    expect(await keysOf(two, '')).toEqual(['default/big']);
    await Promise.all([one.close(), two.close()]);
    await other.terminate();
  });

  it('a document that was deleted and made again has another version: a write on the old one fails', async () => {
    const collection = newCollection();
    const [one, other] = [clients[0], clients[1]].map((each) =>
      firestoreStore(each as Firestore, { collection }),
    );
    if (!one || !other) throw new Error('No store.');
    const claim = claimOf('k', 'p');
    const first = await say(one, claim);
    await client.collection(collection).doc('k').delete();
    const second = await say(other, claimOf('k', 'q'));
    expect([first.kind, second.kind]).toEqual(['granted', 'granted']);
    // From its cache, on a record that is gone.
    expect((await say(one, renewOf(claim))).kind).toBe('lost');
    expect((await say(one, releaseOf(claim))).kind).toBe('released');
    expect((await other.read('k'))?.holders).toHaveLength(1);
    if (first.kind === 'granted' && second.kind === 'granted')
      expect(second.token).toBeGreaterThan(first.tokenLast);
    await Promise.all([one.close(), other.close()]);
  });

  it('a wake-up is pushed to the inbox, which goes when its listener stops', async () => {
    const collection = newCollection();
    const store = firestoreStore(client, { collection });
    const heard: string[] = [];
    const stop = await store.listen?.('inbox-1', (key, why) => heard.push(`${why} ${key}`));
    const claim = claimOf('k', 'p');
    await say(store, claim);
    await say(store, claimOf('k', 'q', { inbox: 'inbox-1' }));
    await say(store, releaseOf(claim));
    await expect.poll(() => heard).toContain('turn k');
    const inbox = client.collection(`${collection}-inboxes`).doc('inbox-1');
    expect((await inbox.get()).exists).toBe(true);
    // As a TTL policy does it: the listener makes it again.
    await inbox.delete();
    await vi.waitFor(async () => expect((await inbox.get()).exists).toBe(true), {
      timeout: 20_000,
      interval: 50,
    });
    await stop?.();
    expect((await inbox.get()).exists).toBe(false);
    await store.close();
  });

  it('other documents of the collection are left alone: refused by command, and not listed', async () => {
    const collection = newCollection();
    await client.collection(collection).doc('order').set({ total: 7 });
    const store = firestoreStore(client, { collection });
    await expect(say(store, claimOf('order', 'p'))).rejects.toThrow(
      /not a lock of Holdfast.*Nothing was changed/,
    );
    await say(store, claimOf('k', 'p'));
    expect(await keysOf(store, '')).toEqual(['k']);
    expect((await client.collection(collection).doc('order').get()).data()).toEqual({ total: 7 });
    await store.close();
  });

  it('a record that is larger than a document may be is refused with advice', async () => {
    const store = firestoreStore(client, { collection: newCollection() });
    const refused = say(store, claimOf('k', 'p', { owner: 'x'.repeat(1_100_000) }));
    await expect(refused).rejects.toBeInstanceOf(UnsupportedError);
    await expect(refused).rejects.toThrow(/at most 1 MiB/);
    await store.close();
  });

  it('unused locks say in the document when it may be deleted, days later', async () => {
    const collection = newCollection();
    const store = firestoreStore(client, { collection });
    const claim = claimOf('k', 'p');
    await say(store, claim);
    await say(store, releaseOf(claim));
    const { deleteAfter } = (await client.collection(collection).doc('k').get()).data() ?? {};
    expect(deleteAfter.toMillis()).toBeGreaterThan(Date.now() + 86_400_000);
    await store.close();
  });

  it('by URL: locks work, probe says what it is, and closing ends the client', async () => {
    const url = `firestore://holdfast/${newCollection()}?emulator=${server.host}:${server.port}`;
    const store = await openStore(url);
    const { server: name, findings } = await store.probe();
    expect(name).toMatch(/^Firestore/);
    expect(findings.map(({ text }) => text).join(' ')).toMatch(/Firestore's clock decides.*TTL policy/s);
    const claim = claimOf('k', 'p');
    expect((await say(store, claim)).kind).toBe('granted');
    expect((await say(store, claimOf('k', 'q', { queue: false }))).kind).toBe('busy');
    expect((await say(store, releaseOf(claim))).kind).toBe('released');
    await store.close();
    await expect(store.read('k')).rejects.toBeInstanceOf(UnsupportedError);
  });

  it('a server that is not there is told by name, and nothing was executed', async () => {
    const locks = createLocks(await openStore('firestore://holdfast/locks?emulator=127.0.0.1:1'));
    const trying = locks.tryAcquire('k');
    await expect(trying).rejects.toBeInstanceOf(StoreError);
    await expect(trying).rejects.toThrow(/nothing listens at 127\.0\.0\.1:1/);
    await locks.close({ drain: 0 });
  });

  it('what is no client, no collection and no option is refused before anything is sent', () => {
    // @ts-expect-error: a URL is no client.
    expect(() => firestoreStore(server.url)).toThrow(InvalidArgumentError);
    for (const collection of ['', 'a/b', '/a', 'a/', '..', '__a__', 'a/b/..'])
      expect(() => firestoreStore(client, { collection }), collection).toThrow(/The collection has to be/);
    expect(() => firestoreStore(client, { collection: 'apps/billing/locks' })).not.toThrow();
    // @ts-expect-error: not a boolean.
    expect(() => firestoreStore(client, { queue: 1 })).toThrow(/queue has to be/);
    // @ts-expect-error: misspelt.
    expect(() => firestoreStore(client, { colection: 'a' })).toThrow(/no option "colection"/);
  });

  it('a URL that says something else is refused, with the right form', async () => {
    const refused = async (url: string, words: RegExp): Promise<void> => {
      await expect(openStore(url), url).rejects.toThrow(words);
      await expect(openStore(url), url).rejects.toBeInstanceOf(InvalidArgumentError);
    };
    await refused('firestore://localhost:8080/locks', /is followed by a project/);
    await refused('firestore://a,b/locks', /is followed by a project/);
    await refused('firestore://p/locks?emulator=8080', /a host and its port/);
    await refused('firestore://p/locks?emulators=a:1', /no option "emulators"/);
    await refused('firestore://p/locks/x', /The collection has to be/);
    await refused('firestore://p/locks?queue=yes', /true or false/);
  });
});
