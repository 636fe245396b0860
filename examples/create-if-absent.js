// @ts-check
/**
 * Create if absent, with the second look inside the lock. Four requests find that a user has no workspace. All four
 * ask for the lock; the first creates it, the others find it when they look again.
 *
 * The first look is only there to make the usual case cheap. The second is the one that counts.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks } from 'holdfast';
import { memoryStore } from 'holdfast/memory';

/** A slow database without a unique index. */
const database = {
  /** @type {{ user: string, by: string }[]} */
  rows: [],
  /** @param {string} user */
  async find(user) {
    await sleep(20);
    return this.rows.find((row) => row.user === user);
  },
  /** @param {{ user: string, by: string }} row */
  async insert(row) {
    await sleep(20);
    this.rows.push(row);
    return row;
  },
};

const store = memoryStore();
const found = { atFirst: 0, inside: 0 };

/**
 * @param {string} name
 * @param {string} user
 */
async function workspaceOf(name, user) {
  const early = await database.find(user);
  if (early) {
    found.atFirst += 1;
    return early;
  }
  const locks = createLocks(store, { owner: name });
  return locks.withLock(`workspace:create:${user}`, async (lease) => {
    const late = await database.find(user);
    if (late) {
      found.inside += 1;
      return late;
    }
    lease.assertHeld();
    return database.insert({ user, by: name });
  });
}

const answers = await Promise.all(['r1', 'r2', 'r3', 'r4'].map((name) => workspaceOf(name, 'user-7')));
const later = await workspaceOf('r5', 'user-7');
await store.close();

console.log(`created by ${database.rows.map((row) => row.by).join(', ')}`);
console.log(`found inside the lock: ${found.inside}; found without asking for it: ${found.atFirst}`);
assert.equal(database.rows.length, 1, 'created once');
assert.equal(found.inside, 3, 'three would have created it again');
assert.equal(found.atFirst, 1, 'the usual case takes no lock');
assert.ok(
  [...answers, later].every((row) => row === database.rows[0]),
  'everybody has the same one',
);
