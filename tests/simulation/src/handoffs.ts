/** Users that hand their lease off to another process, which may come too late, or never. */

import { ANSWERS_MS, type Call, type Wants } from './calls.js';
import type { Dice } from './dice.js';
import type { Lease } from './library.js';
import { StoreError } from './library.js';
import { storeKeyOf } from './profile.js';
import type { Resident } from './resident.js';
import type { World } from './world.js';

/** How long the string is on its way, as a share of the ttl: now and then too long. */
const ON_ITS_WAY = [0.001, 1.3] as const;
const ATTEMPTS = 3;

interface Handed {
  readonly name: string;
  readonly wants: Wants;
  readonly ttlMs: number;
}

export async function handOff(
  world: World,
  resident: Resident,
  handed: Handed,
  lease: Lease,
  dice: Dice,
): Promise<void> {
  const call = begin(world, resident, handed, 'handoff');
  try {
    const handoff = await lease.handoff();
    world.handedOff(handed.name, lease);
    const [first, ...others] = world.residents.filter(({ isClosing }) => !isClosing);
    // The other process goes on by itself, whatever becomes of this one.
    if (first) void goOn(world, dice.pick([first, ...others]), handed, handoff, dice.fork());
  } catch (error) {
    world.sort(error, resident, handed.name);
  } finally {
    world.calls.end(call);
  }
}

async function goOn(
  world: World,
  resident: Resident,
  handed: Handed,
  handoff: string,
  dice: Dice,
): Promise<void> {
  const { process, crew } = resident;
  const waiting = begin(world, resident, handed, 'adopt');
  await process.sleep(handed.ttlMs * dice.scaled(ON_ITS_WAY));
  world.calls.end(waiting);
  try {
    const lease = await adopt(world, resident, handed, handoff);
    if (!lease) return;
    const belief = world.begin(resident, handed.name, lease, dice, 'adopted');
    await process.sleep(dice.scaled(crew.habits.workMs));
    if (belief) {
      world.beliefs.check(belief);
      world.beliefs.end(belief);
    }
    const call = begin(world, resident, handed, 'release');
    await lease.release().finally(() => world.calls.end(call));
  } catch (error) {
    world.sort(error, resident, handed.name);
  }
}

/** One that nobody answered is tried again: the string is good until the ttl is over. */
async function adopt(
  world: World,
  resident: Resident,
  handed: Handed,
  handoff: string,
): Promise<Lease | null> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const call = begin(world, resident, handed, 'adopt');
    try {
      return await resident.locks.adopt(handoff);
    } catch (error) {
      if (!(error instanceof StoreError) || attempt === ATTEMPTS) throw error;
    } finally {
      world.calls.end(call);
    }
  }
  return null;
}

function begin(world: World, resident: Resident, { name, wants }: Handed, what: Call['what']): Call {
  return world.calls.begin({ resident, key: storeKeyOf(name), what, wants, boundMs: ANSWERS_MS });
}
