/** Users of several keys at once: all of them together, or whichever is to be had first. */

import type { Belief } from './beliefs.js';
import { ANSWERS_MS, SETTLES_MS } from './calls.js';
import type { Dice } from './dice.js';
import type { Lease } from './library.js';
import { storeKeyOf } from './profile.js';
import type { Resident } from './resident.js';
import type { World } from './world.js';

const WANTS = { permits: 1, capacity: 1 };

export async function takeSeveral(world: World, resident: Resident, dice: Dice): Promise<void> {
  const names = world.profile.keys.filter(({ kind }) => kind === 'mutex').map(({ name }) => name);
  const { habits } = resident.crew;
  const wait = dice.pick(habits.waitMs);
  const options = { ttl: dice.pick(habits.ttlMs), wait };
  const boundMs = 2 * (wait + SETTLES_MS);
  const calls = begin(world, resident, names, boundMs);
  const settled = (): void => calls.forEach((call) => void world.calls.end(call));
  try {
    const { locks } = resident;
    if (dice.chance(0.5)) {
      const lease = await locks.any(names).tryAcquire(options);
      settled();
      if (lease) await holdAll(world, resident, [lease], dice, () => lease.release());
    } else {
      const group = await locks.all(names).tryAcquire(options);
      settled();
      if (group) await holdAll(world, resident, group.leases, dice, () => group.release());
    }
  } catch (error) {
    settled();
    world.sort(error, resident, names.join(' and '));
  }
}

function begin(world: World, resident: Resident, names: readonly string[], boundMs: number) {
  return names.map((name) => {
    return world.calls.begin({ resident, key: storeKeyOf(name), what: 'group', wants: WANTS, boundMs });
  });
}

async function holdAll(
  world: World,
  resident: Resident,
  leases: readonly Lease[],
  dice: Dice,
  release: () => Promise<void>,
): Promise<void> {
  const beliefs: Belief[] = [];
  for (const lease of leases) {
    const belief = world.begin(resident, lease.key, lease, dice, 'earlier');
    if (belief) beliefs.push(belief);
  }
  await resident.process.sleep(dice.scaled(resident.crew.habits.workMs));
  for (const belief of beliefs) {
    world.beliefs.check(belief);
    world.beliefs.end(belief);
  }
  const names = leases.map(({ key }) => key);
  const calls = begin(world, resident, names, ANSWERS_MS);
  try {
    await release();
  } finally {
    for (const call of calls) world.calls.end(call);
  }
}
