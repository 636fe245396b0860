/** On SQLite, where the death of a process is noticed: whose death counts for a lease that changed hands. */
import { createLocks, type Locks, openStore } from 'holdfast';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Child } from '../sqlite/child.js';
import { type Place, startSqlite } from './stores.js';

const GIVER = new URL('./giver.js', import.meta.url);
const TAKER = new URL('./taker.js', import.meta.url);
const TTL = '60000';
/** A death is noticed within 250 ms; the rest is for a busy machine. Far less than the ttl. */
const NOTICED_MS = 15_000;

let place: Place;
let locks: Locks;
const children: Child[] = [];

beforeEach(async () => {
  place = await startSqlite();
  locks = createLocks(await openStore(place.url));
});

afterEach(async () => {
  await locks.close({ drain: 0 });
  await Promise.all(children.splice(0).map((child) => child.kill()));
  await place.stop();
});

function start(script: URL, ...args: string[]): Child {
  const child = new Child(script, args);
  children.push(child);
  return child;
}

async function handedOff(): Promise<{ giver: Child; text: string }> {
  const giver = start(GIVER, place.url, 'k', TTL, 'stays');
  await giver.said('handoff ');
  const text = giver.lines.find((line) => line.startsWith('handoff '))?.slice('handoff '.length) ?? '';
  return { giver, text };
}

it('F21: killed, the one who handed off loses what it kept, at once, and not what it handed off', async () => {
  const { giver, text } = await handedOff();
  const kept = locks.acquire('k-kept', { wait: NOTICED_MS });
  await giver.kill();
  await (await kept).release();
  expect(await locks.tryAcquire('k', { wait: '1s' })).toBeNull();
  const lease = await locks.adopt(text);
  lease.assertHeld();
  await lease.release();
}, 60_000);

it('F21: killed, the adopter loses it at once, though the one who handed off lives on', async () => {
  const { giver, text } = await handedOff();
  const taker = start(TAKER, place.url);
  taker.tell(text);
  await taker.said('adopted');
  expect(await locks.tryAcquire('k', { wait: '1s' })).toBeNull();
  const waiting = locks.acquire('k', { wait: NOTICED_MS });
  await taker.kill();
  await (await waiting).release();
  expect(await locks.tryAcquire('k-kept')).toBeNull();
  expect(await giver.finish()).toBe(0);
}, 60_000);
