import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { sleep, usePlace } from '../cli/holdfast.js';
import { ask, connections, serve } from './served.js';

const place = usePlace();
const WAITERS = 1_000;
const IDLE_MS = 60_000;
/** Linux counts processor time in hundredths of a second for everybody. */
const MS_PER_TICK = 10;

const waiting = connections();
const asking = connections();
afterAll(() => {
  waiting.destroy();
  asking.destroy();
});

interface Grant {
  readonly hold: string;
  readonly token: number;
}

function processorMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK;
}

function residentMegabytes(pid: number): number {
  const [, kilobytes = ''] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) / 1_024;
}

async function waitersOn(lock: string): Promise<number> {
  const { text } = await ask(asking, 'GET', lock);
  return (JSON.parse(text) as { waiting: number }).waiting;
}

/** The next one comes when this one is seen in the queue: so the order is known. */
async function seen(lock: string, count: number): Promise<void> {
  for (let tries = 0; tries < 2_000; tries++) {
    if ((await waitersOn(lock)) >= count) return;
    await sleep(tries < 10 ? 1 : 10);
  }
  throw new Error(`There were never ${count} in the queue`);
}

/** Waits, notes its turn, and lets the next one in. */
async function takeTurn(lock: string, place: number, turns: [number, number][]): Promise<void> {
  const { status, text } = await ask(waiting, 'POST', `${lock}/acquire`, { ttl: '60s', wait: '5m' });
  if (status !== 200) throw new Error(`Waiter ${place} was answered ${status}: ${text}`);
  const { hold, token } = JSON.parse(text) as Grant;
  turns.push([place, token]);
  await ask(waiting, 'POST', `${lock}/release`, { hold });
}

describe.runIf(process.platform === 'linux')('a thousand clients that wait on one key', () => {
  it('for a minute: the service idles, its memory stays, and they are granted in order', {
    timeout: 300_000,
  }, async () => {
    const { url, running } = await serve(place);
    const lock = `${url}/v2/locks/shop/stock`;
    const first = JSON.parse((await ask(asking, 'POST', `${lock}/acquire`, { ttl: '10m' })).text) as Grant;
    const turns: [number, number][] = [];
    const clients: Promise<void>[] = [];
    for (let count = 1; count <= WAITERS; count++) {
      clients.push(takeTurn(lock, count, turns));
      await seen(lock, count);
    }
    // What so many arrivals left behind is collected first.
    await sleep(5_000);
    const [busyMs, megabytes] = [processorMs(running.pid), residentMegabytes(running.pid)];
    const sinceMs = performance.now();
    await sleep(IDLE_MS);
    const share = (processorMs(running.pid) - busyMs) / (performance.now() - sinceMs);
    const grown = residentMegabytes(running.pid) - megabytes;
    console.log(
      `idle: ${(share * 100).toFixed(2)} % of a core, ${grown.toFixed(1)} MB more of ${megabytes.toFixed(0)}`,
    );
    expect(await waitersOn(lock)).toBe(WAITERS);
    expect(share).toBeLessThan(0.03);
    expect(grown).toBeLessThan(16);

    await ask(asking, 'POST', `${lock}/release`, { hold: first.hold });
    await Promise.all(clients);
    expect(turns.map(([place]) => place)).toEqual(Array.from({ length: WAITERS }, (_, index) => index + 1));
    const tokens = turns.map(([, token]) => token);
    expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
    expect(await waitersOn(lock)).toBe(0);
  });
});
