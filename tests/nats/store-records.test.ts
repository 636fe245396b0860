/** What the store keeps in the bucket, and what it does with what is not its own. */
import type { NatsConnection } from '@nats-io/transport-node';
import { UnsupportedError } from 'holdfast';
import { natsStore } from 'holdfast/nats';
import type { Store } from 'holdfast/protocol';
import { available, type NatsServer, startNats } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  api,
  claimOf,
  connectTo,
  headersOf,
  openStore,
  recordOf,
  releaseOf,
  say,
  subjectOf,
} from './store-scene.js';

const KV_KEY = /^\$KV\.holdfast\.[-/_=a-zA-Z0-9]+(\.[-/_=a-zA-Z0-9]+)*$/;

describe.runIf(available('nats'))('what is stored in NATS', () => {
  let server: NatsServer;
  let connection: NatsConnection;
  let store: Store;
  let other: Store;

  beforeAll(async () => {
    server = await startNats({ own: true });
    connection = await connectTo(server.url);
    store = natsStore(connection);
    other = await openStore([server.url]);
  });

  afterAll(async () => {
    await other?.close();
    await connection?.close();
    await server?.stop();
  });

  async function subjects(): Promise<readonly string[]> {
    const { state } = await api(connection, 'STREAM.INFO.KV_holdfast', { subjects_filter: '$KV.holdfast.>' });
    return Object.keys(state?.subjects ?? {});
  }

  it('F17: job:123 and every other name is a key that KV clients allow, and plain names are as they were', async () => {
    const names = [
      'job:123',
      'a b',
      'a.b',
      'a..b',
      '.a',
      'a.',
      '..',
      '*',
      '>',
      'a.*',
      'é',
      '=3A',
      'a=3Ab',
      'a:b',
      '',
    ];
    const replies = await Promise.all(store.apply(names.map((name, index) => claimOf(name, `p${index}`))));
    expect(replies.map(({ kind }) => kind)).toEqual(names.map(() => 'granted'));
    const found = await subjects();
    for (const subject of found) expect(subject).toMatch(KV_KEY);
    expect(found).toContain('$KV.holdfast.job=3A123');
    expect(found).toContain('$KV.holdfast.a.b');
    const listed: string[] = [];
    for await (const { key } of other.list({ prefix: '' })) listed.push(key);
    expect(listed).toEqual(names.toSorted());
  });

  it('a record has about 250 bytes while held, and 150 after the release', async () => {
    const owner = 'worker-17.example:48213';
    const claim = claimOf('size', 'AAAAAAAAAAAAAAAAAAAAAA', { owner, inbox: 'BBBBBBBBBBBBBBBBBBBBBB' });
    await say(store, claim);
    expect((await recordOf(connection, 'size'))?.text.length).toBeLessThan(250);
    await say(store, releaseOf(claim));
    expect((await recordOf(connection, 'size'))?.text.length).toBeLessThan(150);
  });

  it('P13: names that look like ours never meet what the store keeps for itself', async () => {
    const names = ['=clock', 'clock', '=', 'KV_holdfast', '$KV.holdfast.a'];
    const replies = await Promise.all(store.apply(names.map((name) => claimOf(name, 'p13'))));
    expect(replies.map(({ kind }) => kind)).toEqual(names.map(() => 'granted'));
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    // Asks for the time, which some servers tell only with a message of their own.
    await other.probe();
    for (const name of names) expect((await other.read(name))?.holders[0]?.owner, name).toBe('p13');
  });

  it("what else lies in the bucket is refused by itself and left alone; the batch's others go on", async () => {
    const foreign: Record<string, string> = {
      text: 'hello',
      number: '104',
      empty: '',
      list: '[1]',
      object: '{"a":1}',
    };
    for (const [name, value] of Object.entries(foreign)) await connection.request(subjectOf(name), value);
    const names = ['before', ...Object.keys(foreign), 'after'];
    const results = await Promise.allSettled(store.apply(names.map((name) => claimOf(name, 'p'))));
    expect(results.map(({ status }) => status)).toEqual([
      'fulfilled',
      ...Object.keys(foreign).map(() => 'rejected'),
      'fulfilled',
    ]);
    for (const [index, name] of Object.keys(foreign).entries()) {
      const result = results[index + 1];
      const reason: unknown = result?.status === 'rejected' ? result.reason : null;
      expect(reason, name).toBeInstanceOf(UnsupportedError);
      expect(String(reason), name).toContain('UnsupportedError: The bucket has a value that is not a lock');
      expect((await recordOf(connection, name))?.text).toBe(foreign[name]);
    }
    const listed: string[] = [];
    for await (const { key } of store.list({ prefix: '' })) listed.push(key);
    expect(listed).toContain('before');
    expect(listed).not.toContain('text');
  });

  it('F10: tokens rise though the record was deleted, purged or marked as deleted', async () => {
    let last = 0;
    const next = async (process: string): Promise<void> => {
      // A token follows the clock, a thousand a millisecond, and a grant reserves the next 1,024.
      await new Promise((resolve) => setTimeout(resolve, 50));
      for (const through of [store, other]) {
        const claim = claimOf('f10', `${process} ${through === store}`);
        const granted = await say(through, claim);
        if (granted.kind !== 'granted') throw new Error(JSON.stringify(granted));
        expect(granted.token).toBeGreaterThan(last);
        last = granted.tokenLast;
        await say(through, releaseOf(claim));
      }
    };
    await next('first');
    await api(connection, 'STREAM.MSG.DELETE.KV_holdfast', { seq: (await recordOf(connection, 'f10'))?.seq });
    await next('deleted');
    await api(connection, 'STREAM.PURGE.KV_holdfast', { filter: subjectOf('f10') });
    await next('purged');
    for (const operation of ['DEL', 'PURGE']) {
      const headers = headersOf({ 'KV-Operation': operation });
      await connection.request(subjectOf('f10'), '', { timeout: 2_000, headers });
      await next(operation);
    }
  });

  it('F10: a claim that lay in a buffer until others had come, gone and been cleaned up has a later token', async () => {
    const theirs = claimOf('late', 'other');
    const granted = await say(other, theirs);
    if (granted.kind !== 'granted') throw new Error(granted.kind);
    await say(other, releaseOf(theirs));
    const { seq } = (await recordOf(connection, 'late')) ?? {};
    await api(connection, 'STREAM.MSG.DELETE.KV_holdfast', { seq });
    // Records are cleaned up when the clock has passed their tokens.
    await new Promise((resolve) => setTimeout(resolve, 50));
    // Decided a minute ago on an empty key, and stored only now.
    const decided = granted.now - 60_000;
    const token = decided * 1_000;
    const hold = ['late one', 1, 'late', 1, 1, token, decided, decided + 30_000, null, null];
    const record = { v: 1, t: token + 1_023, d: token, w: decided, n: 1, h: [hold] };
    await connection.request(subjectOf('late'), JSON.stringify(record));
    // It counts from when it was stored, and its process hears of it when it asks again.
    const again = await say(store, claimOf('late', 'late one', { ttlMs: 30_000 }));
    if (again.kind !== 'granted') throw new Error(again.kind);
    expect(again.token).toBeGreaterThan(granted.tokenLast);
    const busy = await say(store, claimOf('late', 'third', { queue: false }));
    if (busy.kind !== 'busy') throw new Error(busy.kind);
    expect(busy.freeInMs).toBeGreaterThan(25_000);
  });

  it('a delay that a record had is kept while somebody changes it who did not take the lock', async () => {
    // Stored 5 s later than its writer thought: it ends 5 s later than it says.
    const now = (await say(store, claimOf('clock', 'p'))).now;
    const decided = now - 5_000;
    const holder = (process: string, ms: number): unknown[] => [
      process,
      1,
      process,
      1,
      3,
      decided * 1_000,
      decided,
      decided + ms,
      null,
      null,
    ];
    const record = {
      v: 1,
      t: decided * 1_000,
      d: decided * 1_000,
      w: decided,
      h: [holder('a', 4_000), holder('b', 60_000)],
    };
    await connection.request(subjectOf('lag'), JSON.stringify(record));
    const claim = claimOf('lag', 'c', { permits: 1, capacity: 3, queue: false });
    expect((await say(other, claim)).kind).toBe('granted');
    const busy = await say(store, claimOf('lag', 'd', { permits: 1, capacity: 3, queue: false }));
    // By the letters of the record, a's hold was over a second ago. By its stamp it has 4 s.
    expect(busy.kind === 'busy' && busy.holders.map(({ owner }) => owner)).toEqual(['a', 'b', 'c']);
    expect(JSON.parse((await recordOf(connection, 'lag'))?.text ?? '{}').l).toBeGreaterThanOrEqual(4_900);
  });

  it('F4: a claim whose answer is lost is the same grant when asked again', async () => {
    const claim = claimOf('f4', 'p');
    const first = await say(store, claim);
    // Another connection knows nothing of the first attempt.
    const again = await say(other, claim);
    if (first.kind !== 'granted' || again.kind !== 'granted') throw new Error('not granted');
    expect([again.token, again.tokenLast, again.expiresAt]).toEqual([
      first.token,
      first.tokenLast,
      first.expiresAt,
    ]);
  });

  it('owners and metadata of any letters come back as they were', async () => {
    const owner = 'line\nbreak, "quotes", \u00e9\u{1f600}, 12 blanks  ';
    const metadata = JSON.stringify({ text: '\u{1f600}\n', long: 'x'.repeat(4_000) });
    await say(store, claimOf('letters', 'a', { owner, metadata, hold: { process: 'p 1 2\n', number: 1 } }));
    expect((await other.read('letters'))?.holders[0]).toMatchObject({ owner, metadata });
  });

  it('a closed store refuses commands and leaves the connection open', async () => {
    const closing = natsStore(connection);
    await say(closing, claimOf('closing', 'a'));
    await closing.close();
    await closing.close();
    await expect(say(closing, claimOf('k', 'a'))).rejects.toThrow('This NATS store is closed.');
    await expect(closing.read('k')).rejects.toBeInstanceOf(UnsupportedError);
    await expect(closing.listen?.('inbox', () => undefined)).rejects.toBeInstanceOf(UnsupportedError);
    await expect(closing.probe()).rejects.toBeInstanceOf(UnsupportedError);
    expect(connection.isClosed()).toBe(false);
  });
});
