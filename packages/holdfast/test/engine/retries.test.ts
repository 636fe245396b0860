import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import type { Command } from '../../src/protocol/commands.js';
import { ATTEMPT_MS_MIN } from '../../src/protocol/constants.js';
import { StoreError } from '../../src/protocol/errors.js';
import { StoreClient } from '../../src/store-client/store-client.js';
import { memoryStore } from '../../src/stores/memory.js';
import { settle, stage, watchOf } from './stage.js';

test('however short the ttl, a store that answers within 50 ms is asked once', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  store.fate = () => 'kept';
  const acquiring = locks.acquire('k', { ttl: 80 });
  await clock.advance(ATTEMPT_MS_MIN - 2);
  store.deliver();
  const lease = await acquiring;
  expect(store.countOf('claim')).toBe(1);
  const releasing = lease.release();
  await clock.advance(ATTEMPT_MS_MIN - 2);
  store.deliver();
  await releasing;
  expect(store.countOf('release')).toBe(1);
});

test('an attempt that is unanswered for longer is sent again, with the same hold', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  store.fate = () => 'kept';
  const acquiring = locks.acquire('k', { ttl: 80 });
  await clock.advance(ATTEMPT_MS_MIN + 30);
  expect(store.countOf('claim')).toBe(2);
  const [first, second] = store.applied;
  expect(first).toEqual(second);
  store.fate = () => 'pass';
  store.deliver();
  await clock.advance(500);
  expect((await acquiring).held).toBe(true);
});

test('however long the ttl, what was asked for during an outage is asked again within half a minute of its end', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const lease = await locks.acquire('held', { ttl: '2h' });
  store.fate = () => 'lost';
  const acquiring = watchOf(locks.acquire('wanted', { ttl: '2h', wait: '2h' }));
  const releasing = watchOf(lease.release());
  await clock.advance(600_000);
  expect(releasing.error).toBeInstanceOf(StoreError);
  store.fate = () => 'pass';
  await clock.advance(31_000);
  expect(acquiring.state).toBe('done');
  expect(await locks.inspect('held')).toBeNull();
});

test('one attempt each: a client that repeats commands itself gets every reply, or a StoreError', async () => {
  const store = memoryStore();
  const client = new StoreClient(store, systemClock);
  const hold = { process: 'p', number: 1 };
  const answers = client.attempt([
    { kind: 'renew', key: 'n/k', hold, ttlMs: 1_000, block: false },
    { kind: 'release', key: 'n/k', hold, minHoldMs: 0 },
  ]);
  expect((await Promise.all(answers)).map(({ kind }) => kind)).toEqual(['lost', 'released']);
  await settle();
  await client.close();
});

test('P15: a caller whose grants always come too late is told so when its wait is over', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  store.fate = () => 'kept';
  const acquiring = watchOf(locks.acquire('k', { ttl: 15, wait: 500 }));
  for (let elapsedMs = 0; elapsedMs < 1_000 && acquiring.state === 'pending'; elapsedMs += 20) {
    await clock.advance(20);
    store.deliver();
    await settle();
  }
  expect(acquiring.error).toBeInstanceOf(StoreError);
});

test('an awaited release ends although ten thousand others follow it while the store is away', async () => {
  const { clock, open } = stage();
  const { locks, store } = open();
  const lease = await locks.acquire('first', { ttl: '1h' });
  const leases = await Promise.all(
    Array.from({ length: 10_050 }, (_, at) => locks.acquire(`k${at}`, { ttl: 1_000, renew: false })),
  );
  store.fate = () => 'lost';
  await clock.advance(900);
  const releasing = watchOf(lease.release());
  await clock.advance(2_500);
  expect(releasing.error).toBeInstanceOf(StoreError);
  expect(leases[0]?.held).toBe(false);
});

test('commands of callers that come one after the other in a turn of the event loop share a batch where that is wanted', async () => {
  for (const [isAfterTurn, batches] of [
    [true, [['n/a', 'n/b', 'n/c']]],
    [false, [['n/a'], ['n/b'], ['n/c']]],
  ] as const) {
    const inner = memoryStore();
    const sent: string[][] = [];
    const apply = (commands: readonly Command[]) => {
      sent.push(commands.map(({ key }) => key));
      return inner.apply(commands);
    };
    // However slow the machine is: where time passes, an event loop that has not turned for 3 ms counts as blocked.
    const clock = { ...systemClock, monotonicMs: () => 0 };
    const client = new StoreClient({ ...inner, apply }, clock, false, isAfterTurn);
    const asked: Promise<unknown>[] = [];
    for (const key of ['n/a', 'n/b', 'n/c']) {
      asked.push(
        client.ask({ kind: 'release', key, hold: { process: 'p', number: 1 }, minHoldMs: 0 }, key, 'release'),
      );
      // As after each read of a socket: what was promised goes on before the next is read.
      for (let hops = 0; hops < 10; hops += 1) await Promise.resolve();
    }
    await Promise.all(asked);
    expect(sent).toEqual(batches);
    await client.close();
  }
});
