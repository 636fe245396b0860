/**
 * The same things are done to every library: work that takes longer than the ttl, a holder that stands still, a lost
 * reply, a restarted server, several waiters. What happens has to be what docs/comparison.md says.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { startPostgres, startProxy, startRedis } from 'holdfast-test-servers';
import { Redis } from 'ioredis';
import { afterEach, describe, expect, it } from 'vitest';
import { read } from '../repository/tree.js';
import { atTheEnd, clearScene, freshFolder, pause } from '../scene.js';
import { type Engine, type Held, PEERS, type Peer, type Session } from './peers.js';

/** proper-lockfile has no shorter one. */
const TTL_MS = 2_000;
/** Replies that come within this time did not wait for a ttl. */
const SOON_MS = TTL_MS / 2;
const WAITERS = 8;
const COUNTED_MS = 5_000;
const COLUMNS = ['longer than the ttl', 'stands still', 'reply lost', 'server restarted', 'order of waiters'];

afterEach(clearScene);

interface Place {
  readonly url: string;
  /** Kills the server and starts it again; null for files. */
  readonly restart: (() => Promise<void>) | null;
}

async function placeOf(engine: Engine): Promise<Place> {
  if (engine === 'file') return { url: freshFolder(), restart: null };
  const server = engine === 'redis' ? await startRedis({ own: true }) : await startPostgres({ own: true });
  atTheEnd(() => server.stop());
  const restart = async (): Promise<void> => {
    await server.kill();
    await server.restart();
  };
  return { url: server.url, restart };
}

async function sessionOf(peer: Peer, url: string): Promise<Session> {
  const session = await peer.open(url);
  const all: Held[] = [];
  atTheEnd(async () => {
    // Some are lost, and some libraries wait for a server that is gone.
    await Promise.race([Promise.allSettled(all.map(async (held) => await held.release())), pause(SOON_MS)]);
    await Promise.race([session.close(), pause(SOON_MS)]);
  });
  return {
    ...session,
    async acquire(key, ttlMs) {
      const held = await session.acquire(key, ttlMs);
      all.push(held);
      return held;
    },
  };
}

/** Another process that waits for the key, `count` times. Resolves once it waits. */
async function contender(name: string, url: string, count = 1): Promise<{ readonly hasIt: () => boolean }> {
  const script = join(import.meta.dirname, 'contender.js');
  const child: ChildProcess = fork(script, [name, url, 'key', String(TTL_MS), String(count)]);
  let hasIt = false;
  child.on('message', (text) => {
    hasIt ||= text === 'has it';
  });
  atTheEnd(async () => {
    if (child.exitCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  });
  await once(child, 'message');
  return { hasIt: () => hasIt };
}

/** What the holder knows some time after another one got the lock. */
async function knowledgeOf(held: Held): Promise<string> {
  const endMs = performance.now() + 2 * TTL_MS;
  while (performance.now() < endMs && !held.wasLost()) await pause(20);
  if (held.wasLost()) return 'is told';
  return held.isHeld() === false ? 'could ask' : 'is not told';
}

async function longerThanTtl(name: string, peer: Peer): Promise<string> {
  const { url } = await placeOf(peer.engine);
  const held = await (await sessionOf(peer, url)).acquire('key', TTL_MS);
  const other = await contender(name, url);
  await pause(2.5 * TTL_MS);
  if (!other.hasIt()) return 'keeps it';
  return `another gets it; it ${await knowledgeOf(held)}`;
}

async function standsStill(name: string, peer: Peer): Promise<string> {
  const { url } = await placeOf(peer.engine);
  const held = await (await sessionOf(peer, url)).acquire('key', TTL_MS);
  const other = await contender(name, url);
  await pause(100);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3 * TTL_MS);
  const says = held.isHeld();
  // Messages of the other process were sent meanwhile.
  await pause(200);
  if (!other.hasIt()) return 'keeps it';
  if (says === false) return 'knows at once';
  const later = await knowledgeOf(held);
  return later === 'is not told' ? later : `${later} later`;
}

async function replyLost(_: string, peer: Peer): Promise<string> {
  const { url } = await placeOf(peer.engine);
  if (peer.engine === 'file') return '–';
  const { hostname, port } = new URL(url);
  const proxy = await startProxy({ host: hostname, port: Number(port) });
  atTheEnd(() => proxy.stop());
  const through = new URL(url);
  through.host = `${proxy.host}:${proxy.port}`;
  const session = await sessionOf(peer, through.href);
  // Scripts are loaded and connections open: what is lost is the reply to the lock.
  await (await session.acquire('first', TTL_MS)).release();
  const before = proxy.lost;
  proxy.loseReplies(1);
  const sinceMs = performance.now();
  const outcome = await session.acquire('key', TTL_MS).then(
    () => 'gets it',
    () => 'fails',
  );
  expect(proxy.lost).toBe(before + 1);
  if (outcome === 'gets it') {
    return performance.now() - sinceMs < SOON_MS ? outcome : 'waits for its own lock to end';
  }
  const againMs = performance.now();
  await (await sessionOf(peer, url)).acquire('key', TTL_MS);
  return performance.now() - againMs < SOON_MS
    ? 'fails, and it is free'
    : 'fails, and it is blocked for a ttl';
}

async function serverRestarted(name: string, peer: Peer): Promise<string> {
  const { url, restart } = await placeOf(peer.engine);
  if (!restart) return '–';
  const held = await (await sessionOf(peer, url)).acquire('key', TTL_MS);
  await restart();
  const other = await contender(name, url);
  await pause(TTL_MS);
  if (!other.hasIt()) return 'keeps it';
  return `another gets it; it ${await knowledgeOf(held)}`;
}

async function orderOfWaiters(_: string, peer: Peer): Promise<string> {
  const { url } = await placeOf(peer.engine);
  const session = await sessionOf(peer, url);
  const first = await session.acquire('key', 20_000);
  const served: number[] = [];
  const waiting = Array.from({ length: WAITERS }, async (_unused, place) => {
    await pause(50 * place);
    const held = await session.acquire('key', 20_000);
    served.push(place);
    await pause(20);
    await held.release();
  });
  await pause(50 * WAITERS + 300);
  await first.release();
  await Promise.all(waiting);
  return served.every((place, index) => place === index) ? 'as they came' : 'by chance';
}

const SCENARIOS = [longerThanTtl, standsStill, replyLost, serverRestarted, orderOfWaiters];

/** The rows of the page's first table, by library. */
const [firstPart = ''] = read('docs/comparison.md').split('\n## ');
const rows = new Map(
  firstPart
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .flatMap(([, name, ...cells]) => (name && name in PEERS ? [[name, cells] as const] : [])),
);

describe('docs/comparison.md says what happens', () => {
  for (const [name, peer] of Object.entries(PEERS)) {
    SCENARIOS.forEach((scenario, column) => {
      it(`${name}: ${COLUMNS[column]}`, async () => {
        expect(await scenario(name, peer)).toBe(rows.get(name)?.[column]);
      });
    });
  }
});

describe('waiting costs', () => {
  for (const [name, peer] of Object.entries(PEERS).filter(([, { engine }]) => engine === 'redis')) {
    it(`${name}: what ${WAITERS} waiters send in a second is about what the page says`, async () => {
      const { url } = await placeOf('redis');
      await (await sessionOf(peer, url)).acquire('key', 60_000);
      const client = new Redis(url);
      atTheEnd(() => client.disconnect());
      const count = async (): Promise<number> =>
        Number(/total_commands_processed:(\d+)/.exec(await client.info('stats'))?.[1]);
      await contender(name, url, WAITERS);
      await pause(1_000);
      const before = await count();
      await pause(COUNTED_MS);
      const perSecond = ((await count()) - before) / (COUNTED_MS / 1_000);
      console.log(`${name}: ${perSecond.toFixed(1)} commands a second`);
      const said = Number(rows.get(name)?.[COLUMNS.length]);
      // On a busy machine they send less.
      expect(perSecond).toBeLessThan(1.5 * said + 2);
      expect(perSecond).toBeGreaterThan(said / 10 - 1);
    });
  }
});
