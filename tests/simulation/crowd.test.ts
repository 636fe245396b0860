import { WAITERS_MAX } from 'holdfast/compare-and-swap';
import { describe, expect, it } from 'vitest';
import { Crowd, waitInCrowd } from './crowd.js';

const CLIENTS = 200;
const TTL_MS = 3_000;
/** Time for every client to arrive, find the queue full, and calm down. */
const SETTLED_MS = 4_000;

/** Roughly a NATS server, and roughly DynamoDB in one region with its queue. */
const ENGINES = [
  { name: 'that wakes waiters', push: true, wayMs: 3, serviceMs: 0.2 },
  { name: 'that wakes nobody', push: false, wayMs: 8, serviceMs: 1 },
] as const;

describe.each(ENGINES)(`${CLIENTS} processes wait for one key on an engine $name`, (engine) => {
  const seed = Number(process.env.HOLDFAST_SEED ?? Math.floor(Math.random() * 2 ** 32));

  it(`the holder keeps its lock, waiters write no more than their line, and each release has a next holder within a second (HOLDFAST_SEED=${seed})`, async () => {
    const crowd = new Crowd({ ...engine, seed });
    const { schedule, count } = crowd;
    const { locks } = crowd.open('holder');
    const lease = await crowd.awaited(locks.acquire('k', { ttl: TTL_MS }), 1_000);
    const gapsMs = waitInCrowd(crowd, CLIENTS, 30);

    await schedule.runUntil(schedule.nowMs + SETTLED_MS);
    const before = { ...count };
    const heldMs = 2 * TTL_MS;
    await schedule.runUntil(schedule.nowMs + heldMs);
    expect(lease.held).toBe(true);
    expect(crowd.lineLength).toBe(WAITERS_MAX);
    const perSecond = (name: 'reads' | 'writes' | 'stored'): number =>
      ((count[name] - before[name]) * 1_000) / heldMs;
    // One refresh per place in 2 s, and one renewal per second.
    expect(perSecond('stored')).toBeLessThan(WAITERS_MAX);
    expect(perSecond('writes')).toBeLessThan(3 * WAITERS_MAX);
    // Every client reads about once a second; without wake-ups the queue reads more often.
    expect(perSecond('reads')).toBeLessThan(3 * CLIENTS);

    crowd.releasedAtMs = schedule.nowMs;
    await crowd.awaited(lease.release(), 1_000);
    await schedule.runUntil(schedule.nowMs + 5_000);
    expect(gapsMs.length).toBeGreaterThan(5);
    expect(Math.max(...gapsMs)).toBeLessThan(1_000);
  }, 60_000);
});
