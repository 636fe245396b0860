/** Users of a store through the real engine, and a room that notices when two are inside. */
import assert from 'node:assert/strict';
import type { Lease, Locks } from '../../api.js';
import { createLocks } from '../../locks.js';
import { eventually, pause } from '../pause.js';
import type { Scene } from './scene.js';

/** Long enough for a loaded machine: what takes this long has gone wrong. */
export const PATIENCE_MS = 20_000;

/** Runs the work with so many users of the store, each through a connection of its own, and closes them. */
export async function withUsers(
  scene: Scene,
  count: number,
  work: (users: readonly Locks[]) => Promise<void>,
): Promise<void> {
  const users: Locks[] = [];
  for (let user = 0; user < count; user++) {
    users.push(createLocks(await scene.another(), { owner: `user ${user}`, wait: PATIENCE_MS }));
  }
  try {
    await work(users);
  } finally {
    await Promise.all(users.map((user) => user.close({ drain: 0 })));
  }
}

export function nth(users: readonly Locks[], index: number): Locks {
  const user = users[index % users.length];
  assert.ok(user);
  return user;
}

export async function waitersOf(locks: Locks, key: string, count: number): Promise<void> {
  await eventually(`${count} waiters of ${key}`, PATIENCE_MS, async () => {
    return ((await locks.inspect(key))?.waiters.length ?? 0) >= count ? true : undefined;
  });
}

export async function freeAgain(locks: Locks, key: string): Promise<void> {
  await eventually(`${key} is free`, PATIENCE_MS, async () =>
    (await locks.inspect(key)) === null ? true : undefined,
  );
}

/** Counts who is inside, and notes the most there ever were and the tokens in the order of entry. */
export class Room {
  inside = 0;
  most = 0;
  visits = 0;
  readonly tokens: number[] = [];

  async visit(lease: Lease, ms: number): Promise<void> {
    this.tokens.push(lease.token);
    this.inside += 1;
    this.most = Math.max(this.most, this.inside);
    const { visits } = this;
    await pause(ms);
    this.visits = visits + 1;
    this.inside -= 1;
  }
}
