import { describe, expect, it } from 'vitest';
import { openLocks } from '../../src/locks.js';
import { ATTEMPT_MS } from '../../src/protocol/constants.js';
import { NotExecutedError, type Retry, StoreError } from '../../src/protocol/errors.js';
import type { Store } from '../../src/protocol/store.js';
import { memoryStore } from '../../src/stores/memory.js';
import { FakeClock, StagedStore, settle, watchOf } from './stage.js';

/** A store that executes nothing for as long as `down` says why. */
class DownStore extends StagedStore {
  down: Retry | null = null;
  /** It says so only after this. */
  silence: Promise<void> = Promise.resolve();

  override apply(...[commands]: Parameters<Store['apply']>): ReturnType<StagedStore['apply']> {
    const { down } = this;
    if (!down) return super.apply(commands);
    this.applied.push(...commands);
    return commands.map(async () => {
      await this.silence;
      throw new NotExecutedError('nothing listens there', down);
    });
  }
}

function scene(down: Retry | null) {
  const clock = new FakeClock();
  const store = new DownStore(memoryStore({ now: () => 1_790_000_000_000 + clock.nowMs }));
  store.down = down;
  return { clock, store, locks: openLocks(store, {}, clock) };
}

const WORDS = '"job" was not acquired: nothing listens there. The store executed nothing.';

describe('a store that says that it executed nothing', () => {
  it('fails a try at once, after one attempt, with the reason and nothing to take back', async () => {
    const { clock, store, locks } = scene('while-waiting');
    const tried = watchOf(locks.tryAcquire('job'));
    await settle();
    expect(tried.error).toBeInstanceOf(StoreError);
    expect(tried.error).toMatchObject({ message: WORDS, key: 'job', operation: 'acquire' });
    expect(tried.error).toMatchObject({ outcome: 'not-executed', cause: expect.any(NotExecutedError) });
    await clock.advance(60_000);
    expect(store.applied.map(({ kind }) => kind)).toEqual(['claim']);
  });

  it('fails a try that comes while others wait for the store, without asking again', async () => {
    const { clock, store, locks } = scene('while-waiting');
    const waiting = watchOf(locks.acquire('job', { wait: '10s' }));
    await clock.advance(1_000);
    const asked = store.applied.length;
    const tried = watchOf(locks.tryAcquire('job'));
    await settle();
    expect(tried.error).toMatchObject({ message: WORDS });
    expect(store.applied).toHaveLength(asked);
    expect(waiting.state).toBe('pending');
  });

  it('is asked again for as long as the caller waits, and no longer', async () => {
    const { clock, store, locks } = scene('while-waiting');
    const waiting = watchOf(locks.acquire('job', { wait: '1s' }));
    await clock.advance(999);
    expect(waiting.state).toBe('pending');
    expect(store.countOf('claim')).toBeGreaterThan(2);
    await clock.advance(1);
    expect(waiting.error).toMatchObject({ message: WORDS, outcome: 'not-executed' });
  });

  it('is believed also when it says so after the attempt counted as unanswered', async () => {
    const { clock, store, locks } = scene('never');
    store.silence = new Promise((resolve) => clock.timer(ATTEMPT_MS + 1, resolve));
    const waiting = watchOf(locks.acquire('job', { wait: '10s' }));
    await clock.advance(ATTEMPT_MS + 1);
    expect(waiting.error).toMatchObject({ message: WORDS, outcome: 'not-executed' });
    expect(store.countOf('claim')).toBe(1);
  });

  it('gives the lock to a caller who waits, once it is there', async () => {
    const { clock, store, locks } = scene('while-waiting');
    const waiting = watchOf(locks.acquire('job', { wait: '5s' }));
    await clock.advance(500);
    store.down = null;
    await clock.advance(1_000);
    expect(waiting.value?.held).toBe(true);
  });

  it('fails those who wait at once too, when waiting does not help', async () => {
    const { store, locks } = scene('never');
    const waiting = watchOf(locks.acquire('job', { wait: '1m' }));
    await settle();
    expect(waiting.error).toMatchObject({ message: WORDS, outcome: 'not-executed' });
    expect(store.applied).toHaveLength(1);
  });

  it('is asked again by a try when somebody was only in the way', async () => {
    const { clock, store, locks } = scene('at-once');
    const tried = watchOf(locks.tryAcquire('job'));
    await clock.advance(1_000);
    expect(tried.state).toBe('pending');
    store.down = null;
    await clock.advance(1_000);
    expect(tried.value?.held).toBe(true);
  });

  it('leaves unknown what an earlier attempt may have done, and takes that back', async () => {
    const { clock, store, locks } = scene(null);
    store.fate = () => 'reply-lost';
    const tried = watchOf(locks.tryAcquire('job'));
    await clock.advance(100);
    store.down = 'while-waiting';
    await clock.advance(1_000);
    expect(tried.state).toBe('pending');
    await clock.advance(1_000);
    expect(tried.error).toMatchObject({ outcome: 'unknown' });
    expect(tried.error).toMatchObject({
      message: expect.stringMatching(/\(nothing listens there\), so whether it was granted is unknown/),
    });
    store.down = null;
    store.fate = () => 'pass';
    await clock.advance(10_000);
    expect((await locks.inspect('job'))?.holders ?? []).toEqual([]);
  });

  it('is jeopardy for a lease, which is renewed when the store is back within its ttl', async () => {
    const { clock, store, locks } = scene(null);
    const jeopardies: unknown[] = [];
    locks.on('jeopardy', ({ cause }) => jeopardies.push(cause));
    const lease = await locks.acquire('job', { ttl: '30s' });
    store.down = 'never';
    await clock.advance(15_000);
    expect(jeopardies).not.toEqual([]);
    store.down = null;
    await clock.advance(30_000);
    expect(lease.held).toBe(true);
  });

  it('fails an eviction and a look at once, with the reason', async () => {
    const { store, locks } = scene('while-waiting');
    store.read = () => Promise.reject(new NotExecutedError('nothing listens there', 'while-waiting'));
    await expect(locks.evict('job', { upToToken: 1 })).rejects.toThrow(
      /evict of "job" failed: nothing listens/,
    );
    await expect(locks.inspect('job')).rejects.toMatchObject({ outcome: 'not-executed' });
    expect(store.applied).toHaveLength(1);
  });
});
