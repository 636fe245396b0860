/** The bucket: how it is made, which ones are refused, and what a bad beginning leaves behind. */
import type { NatsConnection } from '@nats-io/transport-node';
import { createLocks, InvalidArgumentError, UnsupportedError } from 'holdfast';
import { bucketConfig, createBucket, natsStore } from 'holdfast/nats';
import { NotExecutedError, type Reply } from 'holdfast/protocol';
import { acquireTick } from 'holdfast/schedule';
import { available, type NatsServer, startNats } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { renewOf } from '../store-talk.js';
import { api, claimOf, connectTo, releaseOf, say } from './store-scene.js';

const NS_PER_S = 1_000_000_000;

describe.runIf(available('nats'))('the bucket in NATS', () => {
  let server: NatsServer;
  let connection: NatsConnection;

  beforeAll(async () => {
    server = await startNats({ own: true });
    connection = await connectTo(server.url);
  });

  afterAll(async () => {
    await connection?.close();
    await server?.stop();
  });

  /** A stream as some tool may have made it. */
  async function make(bucket: string, more: object): Promise<void> {
    const { error } = await api(connection, `STREAM.CREATE.KV_${bucket}`, {
      ...bucketConfig({ bucket }),
      ...more,
    });
    expect(error).toBeUndefined();
  }

  it('is made on first use, as every KV client knows it, and by many at once', async () => {
    const stores = Array.from({ length: 8 }, () => natsStore(connection, { bucket: 'fresh' }));
    const replies = await Promise.all(stores.map((store, index) => say(store, claimOf(`k${index}`, 'p'))));
    expect(replies.map(({ kind }) => kind)).toEqual(stores.map(() => 'granted'));
    const { config } = await api(connection, 'STREAM.INFO.KV_fresh');
    expect(config).toMatchObject({
      subjects: ['$KV.fresh.>'],
      storage: 'file',
      max_msgs_per_subject: 1,
      num_replicas: 1,
      discard: 'new',
      allow_rollup_hdrs: true,
      allow_direct: true,
      max_age: 15 * 86_400 * NS_PER_S,
    });
    expect(await createBucket(connection, { bucket: 'fresh' })).toEqual({ created: false });
    expect(await createBucket(connection, { bucket: 'made' })).toEqual({ created: true });
  });

  it.each([
    ['history', { max_msgs_per_subject: 5 }, /history is 5, and has to be 1/],
    ['memory', { storage: 'memory' }, /storage is "memory": a restart would lose every lock/],
    ['short', { max_age: 60 * NS_PER_S, duplicate_window: 60 * NS_PER_S }, /records are deleted after 60 s/],
    ['retention', { retention: 'interest' }, /retention is "interest"/],
    ['bytes', { discard: 'old', max_bytes: 8_192 }, /discards old records when it is full/],
    ['messages', { discard: 'old', max_msgs: 20 }, /discards old records when it is full/],
    ['first', { discard_new_per_subject: true }, /refuses every further record of a key/],
    ['foreign', { subjects: ['orders.>'] }, /the stream KV_foreign is not a KV bucket/],
  ])('one with the wrong %s is refused in words, and left as it is', async (bucket, more, words) => {
    await make(bucket, more);
    const before = await api(connection, `STREAM.INFO.KV_${bucket}`);
    const store = natsStore(connection, { bucket });
    for (const doing of [say(store, claimOf('k', 'p')), store.read('k'), store.probe()]) {
      await expect(doing).rejects.toBeInstanceOf(UnsupportedError);
    }
    await expect(say(store, claimOf('k', 'p'))).rejects.toThrow(words);
    await expect(createBucket(connection, { bucket })).rejects.toThrow(words);
    expect(await api(connection, `STREAM.INFO.KV_${bucket}`)).toMatchObject({ config: before.config });
  });

  it('a full one says so, and that nothing was executed; what is held stays', async () => {
    await make('full', { max_bytes: 700 });
    const store = natsStore(connection, { bucket: 'full' });
    const first = claimOf('k1', 'p');
    expect((await say(store, first)).kind).toBe('granted');
    await say(store, claimOf('k2', 'p'));
    await expect(say(store, claimOf('k3', 'p'))).rejects.toMatchObject({
      name: 'NotExecutedError',
      message: expect.stringMatching(/no room for the lock.*maximum bytes exceeded/),
    });
    expect((await say(store, renewOf(first))).kind).toBe('renewed');
    expect((await say(store, releaseOf(first))).kind).toBe('released');
    await store.close();
  });

  it('a record that is larger than its messages may be is refused', async () => {
    await make('narrow', { max_msg_size: 150 });
    const store = natsStore(connection, { bucket: 'narrow' });
    await expect(say(store, claimOf('k', 'p'))).rejects.toThrow(
      /larger than a message may be in this bucket/,
    );
    await expect(say(store, claimOf('k', 'p'))).rejects.toBeInstanceOf(UnsupportedError);
    await store.close();
  });

  it('an account whose streams need a limit gets told how the bucket is made', async () => {
    const account =
      '{ jetstream: { max_file: 8M, max_bytes_required: true }, users: [{ user: app, password: app }] }';
    const config = { accounts: `{ APP: ${account} }`, no_auth_user: 'app' };
    const own = await startNats({ own: true, config });
    const user = await connectTo(own.url);
    const store = natsStore(user);
    await expect(say(store, claimOf('k', 'p'))).rejects.toThrow(/Create it yourself, with max_bytes/);
    await expect(say(store, claimOf('k', 'p'))).rejects.toBeInstanceOf(UnsupportedError);
    await user.close();
    await own.stop();
  });

  it('more replicas than there are servers are refused, and fewer than asked for', async () => {
    const three = natsStore(connection, { bucket: 'three', replicas: 3 });
    await expect(say(three, claimOf('k', 'p'))).rejects.toThrow(/with 3 replicas: it needs a cluster/);
    await make('one', {});
    const store = natsStore(connection, { bucket: 'one', replicas: 3 });
    await expect(say(store, claimOf('k', 'p'))).rejects.toThrow(/one replica, and 3 are asked for/);
  });

  it('one made by other tools, where messages cannot be deleted, will do', async () => {
    await make('tools', { deny_delete: true, max_age: 0 });
    const store = natsStore(connection, { bucket: 'tools' });
    const claim = claimOf('k', 'p', { ttlMs: 7 * 86_400_000 });
    expect((await say(store, claim)).kind).toBe('granted');
    expect((await say(store, releaseOf(claim))).kind).toBe('released');
    const { findings } = await store.probe();
    expect(findings.map(({ text }) => text).join(' ')).toContain('has no max_age');
  });

  it('one that the store makes takes every ttl, and ticks of a schedule that are remembered for a week', async () => {
    const store = natsStore(connection, { bucket: 'longest' });
    expect((await say(store, claimOf('k', 'p', { ttlMs: 7 * 86_400_000 }))).kind).toBe('granted');
    const locks = createLocks(store);
    const tick = new Date();
    expect(await acquireTick(locks, 'nightly', tick, { late: '6d' })).toBe(true);
    expect(await acquireTick(locks, 'nightly', tick, { late: '6d' })).toBe(false);
    await locks.close();
  });

  it('a lock may be taken for half of the time that records are kept, and not longer', async () => {
    await make('ages', { max_age: 4 * 86_400 * NS_PER_S });
    const store = natsStore(connection, { bucket: 'ages' });
    const longest = 2 * 86_400_000;
    const claim = claimOf('k', 'p', { ttlMs: longest });
    expect((await say(store, claim)).kind).toBe('granted');
    const longer = { ...claimOf('longer', 'p'), ttlMs: longest + 1 };
    await expect(say(store, longer)).rejects.toThrow(
      /172801 s are too long for this bucket.*345600 s \(max_age\)/s,
    );
    const renew = { kind: 'renew', key: 'k', hold: claim.hold, ttlMs: longest + 1, block: false } as const;
    await expect(say(store, renew)).rejects.toBeInstanceOf(UnsupportedError);
    expect(await store.read('longer')).toBeNull();
  });

  it('a cool-down is kept for as long as the bucket keeps records: the release of a lock is never refused', async () => {
    await make('cooling', { max_age: 240 * NS_PER_S });
    const store = natsStore(connection, { bucket: 'cooling' });
    const claim = claimOf('k', 'p', { ttlMs: 1_000 });
    expect((await say(store, claim)).kind).toBe('granted');
    const release = { ...releaseOf(claim), minHoldMs: 200_000 };
    expect(await say(store, release)).toMatchObject({ kind: 'released', held: true });
    const snapshot = await store.read('k');
    expect(snapshot?.holders).toMatchObject([{ resting: true }]);
    const [rest] = snapshot?.holders ?? [];
    expect((rest?.expiresAt ?? 0) - (rest?.acquiredAt ?? 0)).toBe(200_000);
  });

  it('P6: a server that is away at first poisons nothing: the same store works once it is there', async () => {
    const own = await startNats({ own: true });
    const early = await connectTo(own.url);
    await own.kill();
    const store = natsStore(early);
    const claim = claimOf('k', 'p');
    await expect(say(store, claim)).rejects.toThrow(/did not answer/);
    await expect(say(store, claim)).rejects.toBeInstanceOf(NotExecutedError);
    await expect(store.read('k')).rejects.toThrow(/did not answer/);
    await own.restart();
    let kind = '';
    for (let tries = 0; tries < 100 && kind !== 'granted'; tries++) {
      kind = await say(store, claim).then(
        (reply) => reply.kind,
        () => 'unknown',
      );
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(kind).toBe('granted');
    await store.close();
    await early.close();
    await own.stop();
  });

  it('one that is deleted under a store is made again, and tokens rise on', async () => {
    const store = natsStore(connection, { bucket: 'gone' });
    const claim = claimOf('k', 'a');
    const first = await say(store, claim);
    await api(connection, 'STREAM.DELETE.KV_gone');
    const next = claimOf('k', 'b');
    await expect(say(store, next)).rejects.toThrow(/No server answers|not found/);
    let second: Reply | null = null;
    for (let tries = 0; tries < 100 && second === null; tries++) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      second = await say(store, next).then(
        (reply) => reply,
        () => null,
      );
    }
    if (first.kind !== 'granted' || second?.kind !== 'granted')
      throw new Error(`${first.kind}, ${second?.kind}`);
    expect(second.token).toBeGreaterThan(first.tokenLast);
  });

  it('what is no connection, no bucket and no number is refused before anything is sent', async () => {
    // @ts-expect-error: a URL is no connection.
    expect(() => natsStore(server.url)).toThrow(InvalidArgumentError);
    // @ts-expect-error: nor is a promise of one.
    expect(() => natsStore(Promise.resolve(connection))).toThrow(/not a NATS connection/);
    for (const bucket of ['', 'a.b', 'a b', 'a>', '*']) {
      expect(() => natsStore(connection, { bucket }), bucket).toThrow(InvalidArgumentError);
    }
    for (const replicas of [0, 1.5, 6, Number.NaN]) {
      expect(() => natsStore(connection, { replicas }), String(replicas)).toThrow(InvalidArgumentError);
    }
    // @ts-expect-error: misspelt.
    expect(() => natsStore(connection, { buckets: 'a' })).toThrow(/no option "buckets"/);
    // @ts-expect-error: not a layout.
    expect(() => natsStore(connection, { layout: 'unknown' })).toThrow(InvalidArgumentError);
  });
});
