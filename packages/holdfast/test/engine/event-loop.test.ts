import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mock } from 'node:test';
import { afterAll, describe, expect, it } from 'vitest';
import type { Lease, Locks } from '../../src/api.js';
import { createLocks, openLocks } from '../../src/locks.js';
import type { Store } from '../../src/protocol/store.js';
import { memoryStore } from '../../src/stores/memory.js';
import { sqliteStore } from '../../src/stores/sqlite/index.js';
import { FakeClock, StagedStore } from './stage.js';

const LOOPS = 64;
const TURNS = 5;
/** When the event loop still stands: far more than any machine needs for a few turns. */
const GIVE_UP_MS = 3_000;

const folder = mkdtempSync(join(tmpdir(), 'holdfast-event-loop-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const STORES: Readonly<Record<string, () => Store>> = {
  memory: () => memoryStore(),
  SQLite: () => sqliteStore(join(folder, `${crypto.randomUUID()}.db`)),
};

type Step = (locks: Locks, loop: number, held: Lease) => Promise<unknown>;

const cycle = async (lease: Promise<{ release(): Promise<void> }>): Promise<void> => (await lease).release();
const nothing = (): void => undefined;

const WORKLOADS: Readonly<Record<string, Step>> = {
  'acquire and release of one key': (locks) => cycle(locks.acquire('one')),
  'acquire and release of many keys': (locks, loop) => cycle(locks.acquire(`key-${loop}`)),
  'withLock on one key': (locks) => locks.withLock('one', nothing),
  'a semaphore': (locks) => cycle(locks.semaphore('pool', { capacity: 8 }).acquire()),
  'a read-write lock': (locks, loop) => {
    const { read, write } = locks.readWrite('page');
    return cycle(loop % 8 === 0 ? write.acquire() : read.acquire());
  },
  'all of several keys': (locks, loop) => cycle(locks.all(['a', 'b', `c-${loop}`]).acquire()),
  'any of several keys': (locks) => cycle(locks.any(['a', 'b', 'c']).acquire()),
  'tryAcquire of a held key': (locks) => locks.tryAcquire('held'),
  'renewals of a held key': (_locks, _loop, held) => held.renew(),
  'inspect of a held key': (locks) => locks.inspect('held'),
};

/** Counts how often the event loop turns until it is stopped. */
function countTurns(): { turns: number; stop(): void } {
  const counter = {
    turns: 0,
    stopped: false,
    stop() {
      counter.stopped = true;
    },
  };
  const onTurn = (): void => {
    counter.turns += 1;
    if (!counter.stopped) setTimeout(onTurn, 0);
  };
  setTimeout(onTurn, 0);
  return counter;
}

for (const [name, open] of Object.entries(STORES)) {
  describe(`on ${name}, timers fire while 64 loops do nothing but`, () => {
    it.each(Object.entries(WORKLOADS))('%s', async (_, step) => {
      const locks = createLocks(open(), { wait: '1m' });
      const held = await locks.acquire('held');
      const counter = countTurns();
      const untilMs = performance.now() + GIVE_UP_MS;
      const loop = async (number: number): Promise<void> => {
        while (counter.turns < TURNS && performance.now() < untilMs) await step(locks, number, held);
      };
      await Promise.all(Array.from({ length: LOOPS }, (__, number) => loop(number)));
      const { turns } = counter;
      counter.stop();
      await held.release();
      await locks.close();
      expect(turns).toBeGreaterThanOrEqual(TURNS);
    });
  });
}

/** Work of a known length, on a clock that only moves with it. */
class WorkClock extends FakeClock {
  turnedMs = this.nowMs;
  longestMs = 0;
  turns = 0;

  work(ms: number): void {
    this.nowMs += ms;
    this.longestMs = Math.max(this.longestMs, this.nowMs - this.turnedMs);
  }

  override afterTurn(run: () => void): void {
    super.afterTurn(() => {
      this.turns += 1;
      this.turnedMs = this.nowMs;
      run();
    });
  }
}

class SlowStore extends StagedStore {
  readonly #work: (commands: number) => void;

  constructor(work: (commands: number) => void) {
    super(memoryStore());
    this.#work = work;
  }

  override apply(...[commands]: Parameters<Store['apply']>): ReturnType<StagedStore['apply']> {
    this.#work(commands.length);
    return super.apply(commands);
  }
}

describe('the event loop turns at least every 20 ms of work', () => {
  it('when every call to the store takes a millisecond', async () => {
    const clock = new WorkClock();
    const locks = openLocks(new SlowStore(() => clock.work(1)), {}, clock);
    for (let cycles = 0; cycles < 100; cycles++) await locks.withLock('one', nothing);
    expect(clock.longestMs).toBeLessThanOrEqual(20);
    expect(clock.turns).toBeGreaterThanOrEqual(10);
  });

  it('when four thousand commands are due at once, and a batch is as slow as SQLite', async () => {
    const clock = new WorkClock();
    const locks = openLocks(new SlowStore((commands) => clock.work(commands / 50)), { ttl: '1h' }, clock);
    const acquired = Array.from({ length: 4_000 }, (_, number) => locks.acquire(`key-${number}`));
    await Promise.all(acquired);
    expect(clock.longestMs).toBeLessThanOrEqual(20);
  });

  it('when waiters of one process serve each other without the store', async () => {
    const clock = new WorkClock();
    const locks = openLocks(memoryStore(), { ttl: '1h', wait: '1h' }, clock);
    const work = (): void => clock.work(0.01);
    await Promise.all(Array.from({ length: 4_000 }, () => locks.withLock('one', work)));
    expect(clock.longestMs).toBeLessThanOrEqual(20);
    expect(clock.turns).toBeGreaterThanOrEqual(2);
  });

  it('and a free loop is never waited for: a lone cycle needs no turn', async () => {
    const clock = new WorkClock();
    const locks = openLocks(memoryStore(), {}, clock);
    let turned = false;
    setImmediate(() => {
      turned = true;
    });
    await locks.withLock('one', nothing);
    expect(turned).toBe(false);
  });
});

it.runIf('timers' in mock)("Node's fake timers do not stop a lock that nobody else wants", async () => {
  mock.timers.enable();
  try {
    const locks = createLocks(memoryStore());
    for (let cycles = 0; cycles < 200; cycles++) await locks.withLock('k', nothing);
    await locks.close();
  } finally {
    mock.timers.reset();
  }
});
