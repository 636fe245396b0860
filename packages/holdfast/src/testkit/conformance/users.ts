/** Users of a store through the real engine, and a critical section that notices two holders. */
import assert from 'node:assert/strict';
import type { Lease, Locks } from '../../api.js';
import { createLocks } from '../../locks.js';
import type { Reply, Store } from '../../protocol/index.js';
import { eventually, pause } from '../pause.js';
import { membersOf } from '../store-members.js';
import type { CaseContext } from './case-context.js';

/** Long enough for a busy machine. */
export const USER_MS_MAX = 60_000;

/** Replies to the commands of one user, which say the store's time. */
export type Replies = Reply[];

/** Runs the work with so many users, each over its own connection, and closes them. */
export async function withUsers(
  context: CaseContext,
  count: number,
  work: (users: readonly Locks[], replies: readonly Replies[]) => Promise<void>,
): Promise<void> {
  const users: Locks[] = [];
  const replies: Replies[] = [];
  for (let user = 0; user < count; user++) {
    const own: Replies = [];
    replies.push(own);
    users.push(
      createLocks(recorded(await context.another(), own), { owner: `user ${user}`, wait: USER_MS_MAX }),
    );
  }
  try {
    await work(users, replies);
  } finally {
    await Promise.all(users.map((user) => user.close({ drain: 0 })));
  }
}

function recorded(store: Store, replies: Replies): Store {
  const record = async (reply: Promise<Reply>): Promise<Reply> => {
    replies.push(await reply);
    return reply;
  };
  return { ...membersOf(store), apply: (commands) => store.apply(commands).map(record) };
}

export function nth(users: readonly Locks[], index: number): Locks {
  const user = users[index % users.length];
  assert.ok(user);
  return user;
}

export async function waitersOf(locks: Locks, key: string, count: number): Promise<void> {
  await eventually(`${count} waiters of ${key}`, USER_MS_MAX, async () => {
    return ((await locks.inspect(key))?.waiters.length ?? 0) >= count;
  });
}

export async function freeAgain(locks: Locks, key: string): Promise<void> {
  await eventually(`${key} is free`, USER_MS_MAX, async () => (await locks.inspect(key)) === null);
}

/** Counts the holders inside, the most at once, and their tokens in order of entry. */
export class CriticalSection {
  inside = 0;
  most = 0;
  visits = 0;
  readonly tokens: number[] = [];

  /** Stays until so many have been inside at once, and for this long. */
  async visit(lease: Lease, ms: number, together = 1): Promise<void> {
    this.tokens.push(lease.token);
    this.inside += 1;
    this.most = Math.max(this.most, this.inside);
    const { visits } = this;
    await pause(ms);
    await eventually(`${together} inside at once`, USER_MS_MAX, () => this.most >= together);
    this.visits = visits + 1;
    this.inside -= 1;
  }
}
