import { afterAll, describe, expect, it } from 'vitest';
import { steadyMs } from '../../src/clock.js';
import { createLocks } from '../../src/index.js';
import { memoryStore } from '../../src/stores/memory.js';
import { conformanceSuite, type Harness } from '../../src/testkit/index.js';
import { connectionTo } from '../testkit/connection.js';

let ahead = 0;
const store = memoryStore({ now: () => steadyMs() + ahead });

const harness: Harness = {
  name: 'memory',
  open: () => Promise.resolve(connectionTo(store)),
  async forget() {
    ahead += 60_000;
    await Promise.all(
      store.apply(Array.from({ length: 500 }, () => ({ kind: 'evict', key: 'x', upToToken: 0 }))),
    );
  },
};

describe('the memory store', () => {
  afterAll(() => store.close());

  for (const { name, run } of conformanceSuite(harness)) it(name, run);

  it('F30: rejects a command that cannot be decided, and that one alone', async () => {
    const own = memoryStore({ now: () => Number.MAX_SAFE_INTEGER / 1_000 });
    const claim = (number: number) =>
      ({
        kind: 'claim',
        key: 'k',
        hold: { process: 'p', number },
        owner: 'o',
        permits: 1,
        capacity: 1,
        ttlMs: 1_000,
        queue: false,
        inbox: null,
        metadata: null,
      }) as const;
    const [first, second] = await Promise.allSettled(
      own.apply([claim(1), { kind: 'evict', key: 'other', upToToken: 0 }]),
    );
    expect([first?.status, second?.status]).toEqual(['rejected', 'fulfilled']);
  });

  it('F13: says that a restart forgets everything, and tokens rise all the same', async () => {
    const claim = (store: ReturnType<typeof memoryStore>) => createLocks(store).acquire('k');
    const first = memoryStore();
    const before = await claim(first);
    expect((await first.probe()).findings.some(({ text }) => /restart forgets/.test(text))).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 5));
    const after = await claim(memoryStore());
    expect(after.token).toBeGreaterThan(before.token);
  });

  it('forgets everything when closed, and refuses what comes after', async () => {
    const own = memoryStore();
    await own.close();
    await own.close();
    await expect(own.apply([{ kind: 'evict', key: 'k', upToToken: 0 }])[0]).rejects.toThrow(/closed/);
  });
});
