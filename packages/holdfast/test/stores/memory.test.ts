import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, describe, expect, it } from 'vitest';
import { steadyMs } from '../../src/clock.js';
import { createLocks } from '../../src/index.js';
import type { Command, Store } from '../../src/protocol/index.js';
import { memoryStore } from '../../src/stores/memory.js';
import { conformanceSuite, type Harness, seededRandom } from '../../src/testkit/index.js';
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

  it('tokens of a key rise, however often it is released and forgotten, whoever claims it', async () => {
    let now = 1_000_000;
    const own = memoryStore({ now: () => now });
    const locks = [createLocks(own), createLocks(own)];
    const { next: random } = seededRandom(7);
    const last = new Map<string, number>();
    for (let cycle = 0; cycle < 5_000; cycle++) {
      const key = `k${Math.floor(random() * 40)}`;
      const lease = await locks[cycle % 2]?.acquire(key);
      if (!lease) throw new Error('Two locks were made.');
      expect(lease.token).toBeGreaterThan(last.get(key) ?? 0);
      last.set(key, lease.token);
      await lease.release();
      now += random() < 0.3 ? Math.floor(random() * 6) : 0;
    }
  });

  it('fresh keys leave nothing behind: memory does not grow with every lock ever taken', async () => {
    const locks = createLocks(memoryStore());
    const cycles = async (count: number, name: string): Promise<number> => {
      for (let cycle = 0; cycle < count; cycle++) await (await locks.acquire(`${name}${cycle}`)).release();
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    const before = await cycles(5_000, 'warm');
    const bytesPerCycle = ((await cycles(50_000, 'fresh')) - before) / 50_000;
    // A record is several hundred bytes.
    expect(bytesPerCycle).toBeLessThan(60);
    await locks.close();
  });

  it('what comes through a wrapper may be lost or doubled there: its marks are kept', async () => {
    const own = memoryStore();
    const late: Command[] = [];
    const wrapped: Store = {
      ...own,
      apply(commands) {
        late.push(...commands.filter(({ kind }) => kind === 'claim'));
        return own.apply(commands);
      },
    };
    await (await createLocks(wrapped).acquire('k')).release();
    expect(await Promise.all(own.apply(late))).toMatchObject([{ kind: 'withdrawn' }]);
  });
});

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  if (typeof collect === 'function') collect();
}
