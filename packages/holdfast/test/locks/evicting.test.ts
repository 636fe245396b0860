/** Evicting one holder, and the reason that reaches it. In simulated time. */
import { expect, test } from 'vitest';
import { InvalidArgumentError, LeaseLostError } from '../../src/index.js';
import { stage } from '../engine/stage.js';

function lossOf({ signal }: { readonly signal: AbortSignal }): LeaseLostError {
  if (signal.reason instanceof LeaseLostError) return signal.reason;
  throw new Error('the lease is not lost');
}

test('F31: by its token, one of three holders of a semaphore loses its lease, and nobody else', async () => {
  const { clock, open } = stage();
  const users = [open(), open(), open()];
  const operator = open();
  const leases = await Promise.all(users.map(({ locks }) => locks.semaphore('k', { capacity: 3 }).acquire()));
  const seen = (await operator.locks.inspect('k'))?.holders.map(({ token }) => token) ?? [];
  const token = leases[1]?.token ?? 0;
  expect(seen).toContain(token);
  expect(await operator.locks.evict('k', { token })).toBe(1);
  expect(await operator.locks.evict('k', { token })).toBe(0);
  await clock.advance(5);
  expect(leases.map(({ state }) => state)).toEqual(['held', 'lost', 'held']);
  const fourth = await operator.locks.semaphore('k', { capacity: 3 }).acquire({ wait: 0 });
  expect(await operator.locks.evict('k', { token })).toBe(0);
  await clock.advance(60_000);
  expect([leases[0]?.held, leases[2]?.held, fourth.held]).toEqual([true, true, true]);
});

test('a reader is evicted alone, and a writer by its own token', async () => {
  const { clock, open } = stage();
  const [a, b] = [open(), open()];
  const [first, second] = await Promise.all([a, b].map(({ locks }) => locks.readWrite('k').read.acquire()));
  expect(await a.locks.evict('k', { token: second?.token ?? 0 })).toBe(1);
  await clock.advance(5);
  expect([first?.state, second?.state]).toEqual(['held', 'lost']);
  await first?.release();
  const writer = await b.locks.readWrite('k').write.acquire();
  expect(await a.locks.evict('k', { token: first?.token ?? 0 })).toBe(0);
  expect(await a.locks.evict('k', { token: writer.token })).toBe(1);
  await clock.advance(5);
  expect(writer.state).toBe('lost');
});

test('a lease that got its hold within its process is evicted by its own token, and by the one that inspect shows', async () => {
  for (const by of ['lease', 'inspect'] as const) {
    const { clock, open } = stage();
    const { locks } = open();
    const operator = open();
    const first = await locks.acquire('k');
    const next = locks.acquire('k');
    await first.release();
    const lease = await next;
    const shown = (await operator.locks.inspect('k'))?.holders[0]?.token ?? 0;
    expect([shown, lease.token]).toEqual([first.token, first.token + 1]);
    expect(await operator.locks.evict('k', { token: by === 'lease' ? lease.token : shown })).toBe(1);
    await clock.advance(5);
    expect(lease.state).toBe('lost');
  }
});

test('the reason reaches the holder at once where wake-ups come', async () => {
  const { clock, open } = stage();
  const [a, b] = [open(), open()];
  const lease = await a.locks.acquire('k', { ttl: 60_000 });
  expect(await b.locks.evict('k', { reason: 'the host is retired' })).toBe(1);
  await clock.advance(5);
  expect(lossOf(lease).reason).toBe('evicted');
  expect(lossOf(lease).message).toContain('the host is retired');
});

test('the reason reaches the holder with its next renewal where no wake-up comes, whoever holds by then', async () => {
  for (const traits of [{ push: false }, {}]) {
    const { clock, open } = stage();
    const [a, b] = [open({}, traits), open({}, traits)];
    const lease = await a.locks.acquire('k', { ttl: 60_000 });
    a.store.hints = false;
    await clock.advance(1_000);
    await b.locks.evict('k', { reason: 'the host is retired' });
    const next = await b.locks.acquire('k', { ttl: 60_000 });
    await clock.advance(5_000);
    expect(lease.held).toBe(true);
    await clock.advance(16_000);
    expect(lossOf(lease).reason).toBe('evicted');
    expect(lossOf(lease).message).toContain('the host is retired');
    expect(next.held).toBe(true);
  }
});

test('an eviction without a reason is told as one', async () => {
  const { clock, open } = stage();
  const [a, b] = [open(), open()];
  const lease = await a.locks.acquire('k', { ttl: 3_000 });
  a.store.hints = false;
  await b.locks.evict('k');
  await clock.advance(1_100);
  expect(lossOf(lease).reason).toBe('evicted');
});

test('what a caller gets wrong is said, and nothing is sent', async () => {
  const { open } = stage();
  const { locks, store } = open();
  const wrong: readonly [object, RegExp][] = [
    [{ token: 1, upToToken: 1 }, /not both/],
    [{ token: -1 }, /token is -1/],
    [{ token: 1.5 }, /token is 1\.5/],
    [{ token: '7' }, /token is "7"/],
    [{ upToToken: Number.NaN }, /upToToken is NaN/],
    [{ reason: '' }, /reason "" is empty: leave it out/],
    [{ reason: 7 }, /reason 7 is not a string/],
    [{ reason: 'two\nlines' }, /control characters/],
    [{ reason: 'ä'.repeat(129) }, /longer than 256 bytes: shorten it/],
    [{ because: 'late' }, /because/],
  ];
  for (const [options, message] of wrong) {
    const evicting = locks.evict('k', options);
    await expect(evicting).rejects.toThrow(message);
    await expect(evicting).rejects.toBeInstanceOf(InvalidArgumentError);
  }
  expect(store.applied).toEqual([]);
  expect(await locks.evict('k', { reason: 'ä'.repeat(128) })).toBe(0);
});
