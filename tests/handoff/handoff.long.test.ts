import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, LeaseLostError, type Locks, openStore } from 'holdfast';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Child } from '../sqlite/child.js';
import { type Place, STORES } from './stores.js';

const GIVER = new URL('./giver.js', import.meta.url);
const TAKER = new URL('./taker.js', import.meta.url);
/** Long enough for a busy machine. */
const TTL_MS = 6_000;

const children: Child[] = [];

// Not after each: they run side by side.
afterAll(async () => {
  await Promise.all(children.splice(0).map((child) => child.kill()));
});

function start(script: URL, ...args: string[]): Child {
  const child = new Child(script, args);
  children.push(child);
  return child;
}

async function word(child: Child, before: string): Promise<string> {
  await child.said(`${before} `);
  return child.lines.find((line) => line.startsWith(`${before} `))?.slice(before.length + 1) ?? '';
}

for (const { name, isHere, start: startPlace } of STORES) {
  describe.runIf(isHere)(`leases handed off between processes on ${name}`, () => {
    let place: Place;
    let locks: Locks;

    beforeAll(async () => {
      place = await startPlace();
      locks = createLocks(await openStore(place.url));
    });

    afterAll(async () => {
      await locks?.close();
      await place?.stop();
    });

    /** Nobody gets the key for this long, though somebody waits in the queue all the time. */
    async function staysTaken(key: string, ms: number): Promise<void> {
      expect(await locks.tryAcquire(key, { wait: ms })).toBeNull();
    }

    it.concurrent.each(['exits', 'closes', 'is killed'] as const)(
      'F21: an adopted lease outlives the process that handed it on, which %s',
      async (ending) => {
        const key = randomUUID();
        const taker = start(TAKER, place.url);
        await taker.said('ready');
        const giver = start(GIVER, place.url, key, `${TTL_MS}`, ending === 'is killed' ? 'stays' : ending);
        const token = await word(giver, 'token');
        taker.tell(await word(giver, 'handoff'));
        expect(await word(taker, 'adopted')).toBe(token);
        if (ending === 'is killed') await giver.kill();
        else await giver.finish();
        await staysTaken(key, 1.5 * TTL_MS);
        expect(taker.lines).not.toContain('lost');
        const waiting = locks.acquire(key, { wait: '20s' });
        expect(await taker.finish()).toBe(0);
        expect(taker.lines).toContain('released');
        const next = await waiting;
        expect(next.token).toBeGreaterThan(Number(token));
        await next.release();
      },
      60_000,
    );

    it.concurrent('what was handed off waits for its adopter, with no process behind it', async () => {
      const key = randomUUID();
      const taker = start(TAKER, place.url);
      await taker.said('ready');
      const giver = start(GIVER, place.url, key, '20000', 'exits');
      const text = await word(giver, 'handoff');
      await giver.finish();
      await staysTaken(key, 1_000);
      taker.tell(text);
      await taker.said('adopted');
      expect(await taker.finish()).toBe(0);
      await (await locks.acquire(key, { wait: '5s' })).release();
    }, 60_000);

    it.concurrent('what nobody adopts is free when its ttl is over, and cannot be adopted afterwards', async () => {
      const key = randomUUID();
      const giver = start(GIVER, place.url, key, `${TTL_MS}`, 'exits');
      const text = await word(giver, 'handoff');
      const next = await locks.acquire(key, { wait: '20s' });
      await expect(locks.adopt(text)).rejects.toThrow(LeaseLostError);
      next.assertHeld();
      await next.release();
    }, 60_000);

    it.concurrent('within one process, three renewals and a release after an adoption', async () => {
      const key = randomUUID();
      const other = createLocks(await openStore(place.url));
      const lease = await other.adopt(await (await locks.acquire(key, { ttl: TTL_MS })).handoff());
      for (let count = 0; count < 3; count++) await lease.renew();
      await sleep(1.2 * TTL_MS);
      lease.assertHeld();
      await lease.release();
      expect(await locks.inspect(key)).toBeNull();
      await other.close();
    }, 30_000);
  });
}
