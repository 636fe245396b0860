/**
 * Services on one store that are restarted one after the other, as an update does it, under clients that hold, wait and take
 * turns all the while.
 */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { createLocks, type Locks } from 'holdfast';
import { httpStore } from 'holdfast/http';
import { freePort } from 'holdfast-test-servers';
import { expect } from 'vitest';
import type { Place, Running } from '../cli/holdfast.js';
import { atTheEnd, pause, until } from '../scene.js';

async function isReady(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/readyz`)).ok;
  } catch (error) {
    // Nothing listens there.
    if (error instanceof TypeError) return false;
    throw error;
  }
}

/** `holdfast serve` at an address that stays the same. */
export class Restartable {
  readonly #start: () => Running;
  readonly url: string;
  #running: Running;

  private constructor(start: () => Running, url: string) {
    this.#start = start;
    this.url = url;
    this.#running = start();
  }

  static async start(place: Place, store: string): Promise<Restartable> {
    const port = await freePort();
    const args = ['serve', '--port', String(port), '--store', store, '--drain', '1s', '--log-level', 'warn'];
    const service = new Restartable(() => place.start(args), `http://127.0.0.1:${port}`);
    await until(() => isReady(service.url), 'the service is ready');
    return service;
  }

  async restart(): Promise<void> {
    this.#running.kill('SIGTERM');
    const { status, stderr } = await this.#running.ended;
    expect([status, stderr]).toEqual([0, expect.stringContaining('draining')]);
    this.#running = this.#start();
    await until(() => isReady(this.url), 'the service is ready again');
  }
}

const CHECK_MS = 100;

/** Sends connections to the services that are ready, in turns, as the Service of Kubernetes does. Its address. */
export async function balance(services: readonly Restartable[]): Promise<string> {
  let ready = services;
  let turn = 0;
  let isOpen = true;
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): Socket =>
    sockets.add(socket) && socket.once('close', () => sockets.delete(socket));
  const server = createServer((client) => {
    keep(client);
    const { port, hostname } = new URL(ready[turn++ % ready.length]?.url ?? services[0]?.url ?? '');
    const back = keep(connect(Number(port), hostname));
    for (const [one, other] of [
      [client, back],
      [back, client],
    ] as const)
      one.pipe(other).on('error', () => one.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const checks = (async () => {
    while (isOpen) {
      const answers = await Promise.all(services.map(({ url }) => isReady(url)));
      ready = services.filter((_, index) => answers[index]);
      await pause(CHECK_MS);
    }
  })();
  atTheEnd(async () => {
    isOpen = false;
    await checks;
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const CONTENDERS = 6;
const WAITERS = 5;
const HELD = 10;
/** Renewed every 4 s. */
const TTL = '12s';

/** Restarts these services one by one while clients at these addresses use locks, and checks that nothing is lost. */
export async function restartUnderLoad(
  services: readonly Restartable[],
  urls: readonly string[],
): Promise<void> {
  const clients: Locks[] = [];
  const open = (): Locks => {
    const locks = createLocks(httpStore({ urls }));
    clients.push(locks);
    atTheEnd(() => locks.close({ drain: 0 }));
    return locks;
  };
  const lost: string[] = [];
  let renewals = 0;
  const holder = open();
  holder.on('lost', ({ key }) => lost.push(key));
  holder.on('renewed', () => {
    renewals += 1;
  });
  const keys = Array.from({ length: HELD }, (_, index) => `held/${index}`);
  const leases = await Promise.all(keys.map((key) => holder.acquire(key, { ttl: TTL })));

  const gate = await holder.acquire('gate', { ttl: '60s' });
  const granted: number[] = [];
  const waiters = Array.from({ length: WAITERS }, () =>
    open().withLock('gate', ({ token }) => void granted.push(token), { ttl: '60s', wait: '5m' }),
  );
  await until(async () => (await holder.inspect('gate'))?.waiters.length === WAITERS, 'all of them wait');

  const turns = new Turns();
  const contenders = Array.from({ length: CONTENDERS }, () => turns.take(open()));
  for (const service of services) {
    const before = turns.tokens.length;
    await until(() => turns.tokens.length > before + CONTENDERS, 'the contenders take turns');
    await service.restart();
    const [renewed, taken] = [renewals, turns.tokens.length];
    // Through what runs now.
    await until(() => renewals > renewed, 'the leases are renewed');
    await until(() => turns.tokens.length > taken + CONTENDERS, 'the contenders go on');
  }
  turns.end();
  await Promise.all(contenders);
  expect(turns.overlaps).toBe(0);
  expect(turns.tokens).toEqual(turns.tokens.toSorted((a, b) => a - b));
  expect(new Set(turns.tokens).size).toBe(turns.tokens.length);

  expect([lost, leases.filter(({ held }) => !held)]).toEqual([[], []]);
  expect(granted).toEqual([]);
  await gate.release();
  await Promise.all(waiters);
  expect(granted).toEqual(granted.toSorted((a, b) => a - b));
  expect(new Set(granted).size).toBe(WAITERS);
  await Promise.all(leases.map((lease) => lease.release()));
}

/** Contenders of one key, each with work between its acquire and its release. */
class Turns {
  readonly tokens: number[] = [];
  overlaps = 0;
  #inside = 0;
  #isOver = false;

  end(): void {
    this.#isOver = true;
  }

  async take(locks: Locks): Promise<void> {
    while (!this.#isOver) {
      await locks.withLock('turns', ({ token }) => this.#work(token), { ttl: '30s', wait: '5m' });
    }
  }

  async #work(token: number): Promise<void> {
    this.#inside += 1;
    if (this.#inside > 1) this.overlaps += 1;
    this.tokens.push(token);
    await pause(5);
    this.#inside -= 1;
  }
}
