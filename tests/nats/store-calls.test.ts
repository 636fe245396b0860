/** What an operation costs, and that none of it is a read that may be stale. */
import type { NatsConnection } from '@nats-io/transport-node';
import { natsStore } from 'holdfast/nats';
import type { Command, Reply, Store } from 'holdfast/protocol';
import { available, type NatsServer, startNats } from 'holdfast-test-servers';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { claimOf, connectTo, openStore, releaseOf, say, type Tapped, tapped } from './store-scene.js';

// Calls are counted from a process that knows nothing yet: other files of this worker have asked for the time.
vi.hoisted(() => vi.resetModules());

const WRITE = '$KV.holdfast.k';
const READ = '$JS.API.STREAM.MSG.GET.KV_holdfast';

describe.runIf(available('nats'))('calls to NATS', () => {
  let server: NatsServer;
  let connection: NatsConnection;
  let tap: Tapped;
  let store: Store;
  let other: Store;
  let used = 0;

  beforeAll(async () => {
    server = await startNats({ own: true });
    connection = await connectTo(server.url);
    tap = tapped(connection);
    store = natsStore(tap.connection);
    other = await openStore([server.url]);
    // The bucket is looked at, and the time is asked for, once.
    await say(store, claimOf('first', 'p'));
    await say(other, claimOf('second', 'p'));
  });

  afterAll(async () => {
    await other?.close();
    await store?.close();
    await connection?.close();
    await server?.stop();
  });

  const newKey = (): string => `k${++used}`;

  /** The calls that a command took, with its reply. */
  async function callsOf(
    command: Command,
  ): Promise<{ readonly reply: Reply; readonly calls: readonly string[] }> {
    tap.calls.length = 0;
    const reply = await say(store, command);
    return { reply, calls: tap.calls.map((call) => call.replace(/\$KV\.holdfast\.k\d+$/, WRITE)) };
  }

  it('one for a key never used, its renewals, its release, and the next claim of this process', async () => {
    const claim = claimOf(newKey(), 'p');
    const renew = { kind: 'renew', key: claim.key, hold: claim.hold, ttlMs: 10_000, block: true } as const;
    const again = { ...claim, hold: { process: 'p', number: 2 } };
    for (const [command, kind] of [
      [claim, 'granted'],
      [renew, 'renewed'],
      [renew, 'renewed'],
      [releaseOf(claim), 'released'],
      [again, 'granted'],
      [releaseOf(again), 'released'],
    ] as const) {
      const { reply, calls } = await callsOf(command);
      expect(reply.kind).toBe(kind);
      expect(calls, command.kind).toEqual([WRITE]);
    }
  });

  it('three for a key that another process used last: the guess, a look, and the write', async () => {
    const key = newKey();
    const theirs = claimOf(key, 'other');
    await say(other, theirs);
    await say(other, releaseOf(theirs));
    const ours = claimOf(key, 'p');
    const first = await callsOf(ours);
    expect(first.reply.kind).toBe('granted');
    expect(first.calls).toEqual([WRITE, READ, WRITE]);
    await say(store, releaseOf(ours));
    const back = { ...theirs, hold: { process: 'other', number: 2 } };
    await say(other, back);
    await say(other, releaseOf(back));
    const second = await callsOf({ ...ours, hold: { process: 'p', number: 2 } });
    expect(second.reply.kind).toBe('granted');
    expect(second.calls).toEqual([WRITE, READ, WRITE]);
  });

  it('one for a release by a holder that was told of a waiter: the record was read ahead', async () => {
    const key = newKey();
    let onTold: () => void = () => undefined;
    const told = new Promise<void>((resolve) => {
      onTold = resolve;
    });
    const stop = await store.listen?.('inbox-of-p', (_key, why) => why === 'waiting' && onTold());
    const ours = claimOf(key, 'p', { inbox: 'inbox-of-p' });
    await say(store, ours);
    expect(await say(other, claimOf(key, 'other', { queue: true }))).toMatchObject({
      kind: 'busy',
      position: 0,
    });
    await told;
    // Answers come in order: by then the record that was read ahead has arrived.
    await store.read(key);
    const { reply, calls } = await callsOf(releaseOf(ours));
    expect(reply).toMatchObject({ kind: 'released', held: true });
    expect(calls).toEqual([WRITE]);
    await stop?.();
  });

  it('two for the first busy try, and one look for every later one', async () => {
    const key = newKey();
    await say(other, claimOf(key, 'other'));
    const claim = claimOf(key, 'p', { queue: false });
    expect(await callsOf(claim)).toMatchObject({ reply: { kind: 'busy' }, calls: [WRITE, READ] });
    expect(await callsOf(claim)).toMatchObject({ reply: { kind: 'busy' }, calls: [READ] });
    expect(await callsOf(claim)).toMatchObject({ reply: { kind: 'busy' }, calls: [READ] });
  });

  it('F24: ten renewals and then a release, one call each, every one on the revision of the one before', async () => {
    const claim = claimOf(newKey(), 'p');
    await say(store, claim);
    for (let round = 0; round < 10; round++) {
      const { reply, calls } = await callsOf({
        kind: 'renew',
        key: claim.key,
        hold: claim.hold,
        ttlMs: 10_001 + round,
        block: false,
      });
      expect(reply.kind).toBe('renewed');
      expect(calls).toEqual([WRITE]);
    }
    const { reply, calls } = await callsOf(releaseOf(claim));
    expect(reply).toMatchObject({ kind: 'released', held: true });
    expect(calls).toEqual([WRITE]);
    expect(await store.read(claim.key)).toBeNull();
  });

  it('F22: nothing is ever read by a direct get, which any replica answers with what it has', async () => {
    tap.calls.length = 0;
    const key = newKey();
    const claim = claimOf(key, 'p', { ttlMs: 60 });
    await say(store, claim);
    await say(other, claimOf(key, 'other'));
    await new Promise((resolve) => setTimeout(resolve, 150));
    await say(store, { ...claim, hold: { process: 'p', number: 2 } });
    await store.read(key);
    for await (const view of store.list({ prefix: '' })) expect(view.key).not.toBe('');
    await store.probe();
    expect(tap.calls.length).toBeGreaterThan(5);
    expect(tap.calls.filter((call) => call.includes('DIRECT'))).toEqual([]);
  });

  it('a take-over is preceded by a look at the time, unless that was asked for a moment ago', async () => {
    const key = newKey();
    await say(other, claimOf(key, 'other', { ttlMs: 1_000 }));
    const claim = claimOf(key, 'p', { queue: false });
    await say(store, claim);
    await new Promise((resolve) => setTimeout(resolve, 2_200));
    const { reply, calls } = await callsOf(claim);
    expect(reply.kind).toBe('granted');
    const clock = calls.indexOf('$KV.holdfast.=clock');
    const described = calls.indexOf('$JS.API.STREAM.INFO.KV_holdfast');
    expect(Math.max(clock, described)).toBeGreaterThanOrEqual(0);
    expect(calls.lastIndexOf(WRITE)).toBeGreaterThan(Math.max(clock, described));
  });
});
