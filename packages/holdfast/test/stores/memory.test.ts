import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, describe, expect, it } from 'vitest';
import { steadyMs } from '../../src/clock.js';
import { createLocks, type Lease } from '../../src/index.js';
import type { Command, HoldId, Reply, Store } from '../../src/protocol/index.js';
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

  it('tokens rise in one millisecond, too, after handovers and after permits of several', async () => {
    const locks = createLocks(memoryStore({ now: () => 1_000_000 }));
    const shared = locks.semaphore('k', { capacity: 3 });
    let last = 0;
    const expectAbove = ({ token }: Lease): void => {
      expect(token).toBeGreaterThan(last);
      last = token;
    };
    for (let round = 0; round < 3; round++) {
      // One hold, that passes from lease to lease.
      await Promise.all(Array.from({ length: 40 }, () => locks.withLock('k', expectAbove)));
      const alone = await locks.acquire('k');
      expectAbove(alone);
      const waiting = [shared.acquire(), shared.acquire(), shared.acquire()];
      await new Promise((resolve) => setImmediate(resolve));
      await alone.release();
      const leases = (await Promise.all(waiting)).sort((a, b) => a.token - b.token);
      leases.forEach(expectAbove);
      for (const lease of leases.toReversed()) await lease.release();
    }
    await locks.close();
  });

  it('a key that is locked again and again stays forgotten: unused tokens of its blocks are given back', async () => {
    const own = memoryStore({ now: () => 1_000_000 });
    const locks = createLocks(own);
    const tokens: number[] = [];
    for (let cycle = 0; cycle < 100; cycle++) {
      const lease = await locks.acquire(`k${cycle % 2}`);
      tokens.push(lease.token);
      await lease.release();
    }
    // A block has a thousand.
    expect(Math.max(...tokens) - Math.min(...tokens)).toBeLessThan(1_000);
    await locks.close();
  });

  it('F31: an eviction of everybody that was seen ends no later holder, though unused tokens are given back', async () => {
    const own = memoryStore({ now: () => 1_000_000 });
    const locks = createLocks(own);
    const listed = async () => {
      for await (const snapshot of own.list({ prefix: '' })) return snapshot;
      return null;
    };
    for (const look of [() => own.read('default/k'), listed]) {
      const first = await locks.acquire('k');
      const seen = await look();
      await first.release();
      const next = await locks.acquire('k');
      expect(next.token).toBeGreaterThan(seen?.token ?? Number.POSITIVE_INFINITY);
      expect(await locks.evict('k', { upToToken: seen?.token ?? 0 })).toBe(0);
      await next.release();
    }
    const first = await locks.acquire('k');
    const evicting = locks.evict('k');
    // The key was read, and the eviction is on its way.
    await null;
    await first.release();
    const next = await locks.acquire('k');
    expect(await evicting).toBe(0);
    await next.renew();
    await locks.close({ drain: 0 });
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

  it('clean-up deletes no lock that is held, though its key was released long ago', async () => {
    let now = 1_000_000;
    const own = memoryStore({ now: () => now });
    const [one, two] = [createLocks(own), createLocks(own)];
    await (await one.acquire('job')).release();
    now += 120_000;
    await one.acquire('job');
    for (let other = 0; other < 100; other++) await (await one.acquire(`other${other}`)).release();
    expect(await two.tryAcquire('job')).toBeNull();
  });

  it('random commands of several processes, sent by atOnce or not: never two holders, and tokens rise', async () => {
    const { between, chance, pick } = seededRandom(11);
    let now = 1_000_000;
    const own = memoryStore({ now: () => now });
    const apply = own.apply as Required<typeof own.apply>;
    const processes = ['once1', 'once2', 'plain1', 'plain2'];
    const numbers = new Map<string, number>();
    const holders = new Map<string, { readonly hold: HoldId; tokenUsed: number; expiresAt: number }>();
    const replaced: Command[] = [];
    const last = new Map<string, number>();
    const releaseOf = (key: string, { hold, tokenUsed }: { hold: HoldId; tokenUsed: number }): Command => ({
      kind: 'release',
      key,
      hold,
      minHoldMs: 0,
      ...(hold.process.startsWith('once') && { tokenUsed }),
    });
    const say = async (command: Command, process: string): Promise<Reply | Error | undefined> =>
      process.startsWith('once') ? apply.atOnce([command])[0] : own.apply([command])[0];
    for (let step = 0; step < 30_000; step++) {
      const key = `k${between(1, 4)}`;
      const process = pick(processes);
      const known = holders.get(key);
      if (known && known.hold.process === process && chance(0.6)) {
        await say(releaseOf(key, known), process);
        holders.delete(key);
      } else if (replaced.length > 0 && chance(0.2)) {
        // The release of a hold that expired long ago.
        const [late] = replaced.splice(0, 1);
        if (late?.kind === 'release') await say(late, late.hold.process);
      } else {
        const number = (numbers.get(process) ?? 0) + 1;
        numbers.set(process, number);
        const hold = { process, number };
        const ttlMs = pick([50, 1_000, 20_000]);
        const what = { owner: process, permits: 1, capacity: 1, queue: false, inbox: null, metadata: null };
        const reply = await say({ kind: 'claim', key, hold, ttlMs, ...what }, process);
        if (!reply || reply instanceof Error) throw new Error('Every claim is answered.');
        if (reply.kind === 'granted') {
          expect(known === undefined || known.expiresAt <= now).toBe(true);
          expect(reply.token).toBeGreaterThan(last.get(key) ?? 0);
          // Of a block, not all tokens are used.
          const tokenUsed = process.startsWith('once')
            ? between(reply.token, reply.tokenLast)
            : reply.tokenLast;
          last.set(key, tokenUsed);
          if (known) replaced.push(releaseOf(key, known));
          holders.set(key, { hold, tokenUsed, expiresAt: reply.expiresAt });
        } else expect((known?.expiresAt ?? 0) > now).toBe(true);
      }
      if (chance(0.5)) now += pick([0, 1, 1, 2, 5, 40, 700, 40_000]);
    }
  });

  it('a hold that was claimed through apply keeps its mark, whoever releases it', async () => {
    const own = memoryStore();
    const hold = { process: 'a client of a service', number: 1 };
    const what = { owner: 'o', permits: 1, capacity: 1, queue: false, inbox: null, metadata: null };
    const claim = { kind: 'claim', key: 'k', hold, ttlMs: 9_000, ...what } as const;
    await own.apply([claim])[0];
    own.apply.atOnce?.([{ kind: 'release', key: 'k', hold, minHoldMs: 0 }]);
    expect(await own.apply([claim])[0]).toMatchObject({ kind: 'withdrawn' });
  });

  it('tokens rise also when the clock goes back', async () => {
    let now = 1_000_000;
    const locks = createLocks(memoryStore({ now: () => now }));
    const before = await locks.acquire('k');
    await before.release();
    for (let step = 0; step < 5; step++) {
      now += 5;
      await (await locks.acquire(`other${step}`)).release();
    }
    now -= 1_000;
    expect((await locks.acquire('k')).token).toBeGreaterThan(before.token);
  });

  it('a release that comes after its hold has expired gives no tokens back: later holds have used them', () => {
    let now = 1_000_000;
    const { atOnce } = memoryStore({ now: () => now }).apply;
    const what = { owner: 'o', permits: 1, capacity: 1, queue: false, inbox: null, metadata: null };
    const tokenOf = (number: number): number => {
      const hold = { process: 'p', number };
      const [reply] = atOnce?.([{ kind: 'claim', key: 'k', hold, ttlMs: 50, ...what }]) ?? [];
      if (reply instanceof Error || reply?.kind !== 'granted') throw new Error('The key is free.');
      return reply.token;
    };
    const release = (number: number, tokenUsed?: number) =>
      atOnce?.([{ kind: 'release', key: 'k', hold: { process: 'p', number }, minHoldMs: 0, tokenUsed }]);
    const expired = tokenOf(1);
    now += 60;
    let last = 0;
    // So many blocks in one millisecond that the key keeps its record.
    for (let number = 2; number < 9; number++) {
      last = tokenOf(number);
      release(number);
    }
    release(1, expired);
    expect(tokenOf(9)).toBeGreaterThan(last);
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
