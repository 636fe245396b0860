/** One case's stage: a server of its own, proxies before it, users of it in this and in other processes. */
import { createLocks, type Lease, type Locks } from 'holdfast';
import { type ProxyTarget, startProxy, type TcpProxy } from 'holdfast-test-servers';
import { expect } from 'vitest';
import { Child } from './child.js';
import { connect } from './drivers.js';
import { crowdings, staleTokens } from './journal.js';
import type { StoreLog } from './store-log.js';
import { machineMs, type Turn } from './turns.js';
import type { Place, Server, World } from './world.js';

const CONTENDER = new URL('./contender.js', import.meta.url);

/** How long somebody may need for what is done at once, on a machine that is busy with other tests. */
export const SOON_MS = 10_000;

export type OnFinished = (clear: () => Promise<void>) => void;

export interface Users {
  /** The way to the server; straight unless told. */
  readonly via?: ProxyTarget;
  /** The way that hints take, where it is another one. */
  readonly hintsVia?: ProxyTarget;
  readonly ttlMs?: number;
  readonly owner?: string;
  readonly log?: StoreLog;
}

export interface ContenderOptions {
  readonly via?: ProxyTarget | undefined;
  readonly hintsVia?: ProxyTarget;
  readonly key?: string;
  readonly ttlMs?: number;
  readonly workMs?: number;
  /** What every third turn takes; the same unless told. Longer than a lease, it lives on renewals. */
  readonly longMs?: number;
  /** Not every third, but one in so many. */
  readonly longEvery?: number;
  /** How many contend in that process: one unless told. */
  readonly contenders?: number;
  readonly capacity?: number;
  /** Whether it leaves in the end without waiting for the server. */
  readonly abandons?: boolean;
  /** How far its wall clock is off. */
  readonly clockOffMs?: number;
}

/** Rejections that nobody handled, in all cases of this process. The runner would tell of them only at its end. */
const unhandled: unknown[] = [];
process.on('unhandledRejection', (error) => unhandled.push(error));

export class Scene<P extends Place = Place> {
  readonly world: World;
  readonly server: P;
  private readonly proxies: TcpProxy[] = [];
  private readonly users: (() => Promise<unknown>)[] = [];
  private readonly children = new Set<Child>();
  private readonly dead: Child[] = [];

  constructor(world: World, server: P) {
    this.world = world;
    this.server = server;
  }

  /** A stage on a server that may be broken; cleared when the test is over, however it ended. */
  static async onServer(world: World, onFinished: OnFinished): Promise<Scene<Server>> {
    const scene = new Scene(world, await world.startServer());
    onFinished(async () => {
      await scene.server.resume();
      await scene.clear();
    });
    return scene;
  }

  /** A stage on a server that must not be broken: others may use it too. */
  static async open(world: World, onFinished: OnFinished): Promise<Scene> {
    const scene = new Scene(world, await world.openPlace());
    onFinished(() => scene.clear());
    return scene;
  }

  async proxy(): Promise<TcpProxy> {
    const { host, port } = this.server;
    const proxy = await startProxy({ host, port }, { http2: this.world.http2 ?? false });
    this.proxies.push(proxy);
    return proxy;
  }

  /** Locks on a connection of their own: to the server, another process. */
  async locks({ via, hintsVia, ttlMs = 1_500, owner = 'test', log }: Users = {}): Promise<Locks> {
    const connection = await connect(this.world.driver, {
      url: this.through(via),
      ...(hintsVia ? { listenerUrl: this.through(hintsVia) } : {}),
    });
    const locks = createLocks(log ? log.on(connection.store) : connection.store, { ttl: ttlMs, owner });
    this.users.push(() => locks.close({ drain: 0 }).finally(() => connection.close()));
    return locks;
  }

  async contender(name: string, options: ContenderOptions = {}): Promise<Child> {
    const { via, hintsVia, clockOffMs, ...rest } = options;
    const task = {
      driver: this.world.driver,
      url: this.through(via),
      ...(hintsVia ? { listenerUrl: this.through(hintsVia) } : {}),
      name,
      key: 'contended',
      ttlMs: 1_500,
      workMs: 15,
      longMs: rest.workMs ?? 15,
      longEvery: 3,
      restMs: this.world.restMs ?? 10,
      waitMs: this.world.waitMs ?? 3_000,
      contenders: 1,
      capacity: 1,
      // After an outage `postgres` listens again even once it was ended, and never lets its process end by itself.
      abandons: this.world.driver === 'postgres',
      ...rest,
    };
    const child = new Child(name, CONTENDER, [JSON.stringify(task)], clockOffMs);
    this.children.add(child);
    await child.said('ready');
    return child;
  }

  /** Kills a contender. The turns that it had count. */
  async kill(child: Child): Promise<void> {
    this.children.delete(child);
    this.dead.push(child);
    await child.kill();
  }

  /** Ends the contenders in peace: each by itself, none with a rejection that nobody handled. */
  async finish(): Promise<readonly Turn[]> {
    const ends = [...this.children].map(async (child) => ({ child, code: await child.finish() }));
    for (const { child, code } of await Promise.all(ends)) {
      expect(code, child.story).toBe(0);
      expect(child.lines, child.story).toContain('closed');
      expect(child.saying('UNHANDLED'), child.story).toEqual([]);
      // One that is suspended while a lease is returned to it finds that lease over, through no fault of anybody.
      expect(child.saying('EXPIRED').length, child.story).toBeLessThanOrEqual(child.stops);
    }
    this.expectNothingUnhandled();
    return [...this.children, ...this.dead].flatMap((child) => child.turns);
  }

  expectNothingUnhandled(): void {
    expect(unhandled).toEqual([]);
  }

  private through(via: ProxyTarget | undefined): string {
    const url = new URL(this.server.url);
    if (via) url.host = `${via.host}:${via.port}`;
    return url.href;
  }

  private async clear(): Promise<void> {
    await Promise.all([...this.children].map((child) => child.kill()));
    for (const proxy of this.proxies) proxy.pass();
    await Promise.allSettled(this.users.map((close) => close()));
    await Promise.all(this.proxies.map((proxy) => proxy.stop()));
    await this.server.stop();
  }
}

/** The verdict of the resource: never two at once, and every token above the one before. */
export function expectExclusive(turns: readonly Turn[]): void {
  expect(crowdings(turns)).toEqual([]);
  expect(staleTokens(turns)).toEqual([]);
}

/** A promise that is awaited later: should the test fail before, its own failure is no news. */
export function later<T>(promise: Promise<T>): Promise<T> {
  void Promise.allSettled([promise]);
  return promise;
}

/** When the signal aborted; awaited too late it is known all the same. */
export function lossOf({ signal }: Lease): Promise<number> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(machineMs());
    else signal.addEventListener('abort', () => resolve(machineMs()), { once: true });
  });
}

/** Looks again and again until it finds what it wants. */
export async function eventually<T>(
  look: () => Promise<T>,
  isWanted: (seen: T) => boolean,
  withinMs = SOON_MS,
): Promise<T> {
  const untilMs = machineMs() + withinMs;
  for (;;) {
    const seen = await look();
    if (isWanted(seen)) return seen;
    if (machineMs() > untilMs)
      throw new Error(`Not so after ${withinMs} ms. Seen last: ${JSON.stringify(seen)}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

export async function waiterCount(locks: Locks, key: string): Promise<number> {
  return (await locks.inspect(key))?.waiters.length ?? 0;
}
