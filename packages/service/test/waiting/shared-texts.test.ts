import { memoryStore } from 'holdfast/memory';
import type { Claim, Command, Reply } from 'holdfast/protocol';
import { afterEach, describe, expect, it } from 'vitest';
import { SharedTexts } from '../../src/waiting/holds.js';
import { clearScene, stage, until } from '../scene.js';

afterEach(clearScene);

const LOCK = '/v2/locks/a/b';

/** A memory store that tells which claims it got, and keeps back the first batch after `keepNext` until `letGo`. */
function watched() {
  const inner = memoryStore();
  const claims: Claim[] = [];
  let isNextKept = false;
  let letGo: (() => void) | null = null;
  const store = {
    ...inner,
    apply(commands: readonly Command[]) {
      for (const command of commands) if (command.kind === 'claim') claims.push(command);
      if (!isNextKept) return inner.apply(commands);
      isNextKept = false;
      const kept = new Promise<void>((resolve) => {
        letGo = resolve;
      });
      const replies = kept.then(() => Promise.all(inner.apply(commands)));
      return commands.map(async (_, index) => (await replies)[index] as Reply);
    },
  };
  return {
    store,
    claims,
    keepNext() {
      isNextKept = true;
    },
    isKept: async () => letGo !== null,
    letGo: () => letGo?.(),
  };
}

describe('holds of one principal on one key', () => {
  it('share a text, with numbers that rise by steps that nobody can guess', () => {
    const texts = new SharedTexts();
    const holds = Array.from({ length: 20 }, () => texts.next('key:ada', 'a/b'));
    expect(new Set(holds.map(({ process }) => process)).size).toBe(1);
    const steps = holds.slice(1).map(({ number }, index) => number - (holds[index]?.number ?? 0));
    expect(steps.every((step) => step > 0)).toBe(true);
    expect(new Set(steps).size).toBe(steps.length);
    // Fails once in 2⁶⁰ runs.
    expect(Math.max(...steps)).toBeGreaterThan(2 ** 41);
  });

  it('share it with no other principal, and with no other key', () => {
    const texts = new SharedTexts();
    const names = [
      ['key:ada', 'a/b'],
      ['key:bob', 'a/b'],
      ['key:ada', 'a/c'],
    ] as const;
    const processes = names.map(([principal, key]) => texts.next(principal, key).process);
    expect(new Set(processes).size).toBe(3);
  });

  it('get another text before the numbers are used up', () => {
    const texts = new SharedTexts();
    const holds = Array.from({ length: 3_000 }, () => texts.next('key:ada', 'a/b'));
    expect(holds.every(({ number }) => Number.isSafeInteger(number) && number > 0)).toBe(true);
    const processes = new Set(holds.map(({ process }) => process));
    expect(processes.size).toBeGreaterThan(2);
    expect(processes.size).toBeLessThan(30);
  });
});

describe('a lock that is taken again and again', () => {
  it('leaves the store few texts to remember', async () => {
    const { store, claims } = watched();
    const { acquire, post } = await stage({ store });
    for (let cycle = 0; cycle < 50; cycle += 1) {
      const { hold } = await acquire('a/b');
      expect((await post(`${LOCK}/release`, { hold })).body.held).toBe(true);
    }
    expect(claims).toHaveLength(50);
    expect(new Set(claims.map(({ hold }) => hold.process)).size).toBeLessThan(3);
  });

  it('is not granted again to a hold that was released', async () => {
    const { acquire, post } = await stage();
    const { hold } = await acquire('a/b');
    await post(`${LOCK}/release`, { hold });
    const { status, body } = await post(`${LOCK}/acquire`, { ttl: '30s', hold });
    expect([status, body.code]).toEqual([409, 'ended']);
  });

  it('is granted also after a client ended a hold that was never given to it', async () => {
    const { acquire, post, get } = await stage();
    const { hold } = await acquire('a/b');
    const process = hold.slice(0, hold.lastIndexOf('.'));
    const highest = `${process}.${Number.MAX_SAFE_INTEGER}`;
    expect((await post(`${LOCK}/release`, { hold: highest })).body.held).toBe(false);
    // The lock is still held by its holder.
    expect((await post(`${LOCK}/renew`, { hold, ttl: '30s' })).status).toBe(200);
    expect((await post(`${LOCK}/release`, { hold })).body.held).toBe(true);
    const next = await acquire('a/b');
    expect(next.hold.startsWith(process)).toBe(false);
    expect((await get(LOCK)).body.holding).toBe(1);
    expect((await post(`${LOCK}/release`, { hold: next.hold })).body.held).toBe(true);
  });

  it('is granted to a request that a later one overtook on its way to the store', async () => {
    const { store, keepNext, isKept, letGo } = watched();
    const { acquire, post } = await stage({ store });
    const shared = { ttl: '30s', capacity: 2 };
    keepNext();
    const early = acquire('a/b', shared);
    await until(isKept, 'the first claim is on its way');
    const late = await acquire('a/b', shared);
    expect((await post(`${LOCK}/release`, { hold: late.hold })).body.held).toBe(true);
    letGo();
    const { hold } = await early;
    expect((await post(`${LOCK}/release`, { hold })).body.held).toBe(true);
  });
});
