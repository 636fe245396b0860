/** What users do: take locks, work under them, give up, renew, release, again and again until the world ends. */

import { ANSWERS_MS, type Call, SETTLES_MS, type Wants } from './calls.js';
import type { Dice } from './dice.js';
import { takeSeveral } from './groups.js';
import { handOff } from './handoffs.js';
import type { Lease, Lockable, SharedOptions, Timer } from './library.js';
import { AcquireTimeoutError, LeaseLostError, READ_WRITE_CAPACITY, StoreError } from './library.js';
import { type KeySpec, storeKeyOf } from './profile.js';
import type { Resident } from './resident.js';
import type { World } from './world.js';

const MIN_HOLD_MS = [1, 300] as const;
const GAVE_UP = new Error('The caller gave up.');

interface Plan {
  readonly key: KeySpec;
  readonly wants: Wants;
  readonly ttlMs: number;
  readonly lockable: Lockable<Lease, SharedOptions>;
  readonly options: SharedOptions;
  readonly waitMs: number;
  readonly aborting: Timer | null;
  readonly verb: 'acquire' | 'tryAcquire' | 'withLock';
  readonly workMs: number;
  /** To at least so long from then; 0 for a plain renewal, null for none. */
  readonly renewMs: number | null;
}

export async function work(world: World, resident: Resident, dice: Dice): Promise<void> {
  const { process, crew } = resident;
  const isOver = (): boolean => world.isEnding || resident.isClosing;
  while (!isOver()) {
    await process.sleep(dice.scaled(crew.habits.thinkMs));
    if (isOver()) return;
    if (dice.chance(crew.habits.groupShare)) await takeSeveral(world, resident, dice);
    else await takeATurn(world, resident, planOf(world, resident, dice), dice);
  }
}

function planOf(world: World, resident: Resident, dice: Dice): Plan {
  const { habits } = resident.crew;
  const key = world.pickKey(dice);
  const write = dice.chance(habits.writeShare);
  const { lockable, wants } = lockableOf(resident, key, write, dice);
  const isTry = dice.chance(habits.tryShare);
  const waitMs = isTry && dice.chance(0.5) ? 0 : dice.pick(habits.waitMs);
  const ttl = dice.pick(habits.ttlMs);
  const abort = waitMs > 0 && dice.chance(habits.abortShare) ? new AbortController() : null;
  if (abort) world.tally.fault('abort');
  const abortIn = abort ? dice.between(0, waitMs / 4) : 0;
  const aborting = abort ? resident.process.clock.timer(abortIn, () => abort.abort(GAVE_UP)) : null;
  const noRenew = dice.chance(habits.noRenewShare);
  const options: SharedOptions = {
    ttl,
    wait: waitMs,
    ...(wants.permits > 1 && key.kind === 'semaphore' ? { permits: wants.permits } : {}),
    ...(abort ? { signal: abort.signal } : {}),
    ...(dice.chance(habits.minHoldShare) ? { minHold: dice.scaled(MIN_HOLD_MS) } : {}),
    ...(dice.chance(habits.metadataShare) ? { metadata: { by: resident.process.name } } : {}),
    ...(noRenew ? { renew: false } : {}),
  };
  const renews = dice.chance(habits.renewShare);
  const renewMs = renews ? (dice.chance(0.5) ? Math.round(ttl * dice.between(...habits.stretch)) : 0) : null;
  const overstays = noRenew && dice.chance(habits.overstayShare);
  const workMs = overstays ? 1.2 * (renewMs || ttl) : dice.scaled(habits.workMs);
  const verb = isTry ? 'tryAcquire' : dice.chance(0.5) ? 'acquire' : 'withLock';
  return { key, wants, ttlMs: ttl, lockable, options, waitMs, aborting, verb, workMs, renewMs };
}

function lockableOf({ locks }: Resident, key: KeySpec, write: boolean, dice: Dice) {
  const { name, kind, capacity = 1 } = key;
  switch (kind) {
    case 'mutex': {
      const lockable: Lockable<Lease, SharedOptions> = {
        acquire: (options) => locks.acquire(name, options),
        tryAcquire: (options) => locks.tryAcquire(name, options),
        withLock: (run, options) => locks.withLock(name, run, options),
      };
      return { lockable, wants: { permits: 1, capacity: 1 } };
    }
    case 'semaphore': {
      const permits = dice.chance(0.8) ? 1 : 1 + Math.floor(dice.next() * capacity);
      return { lockable: locks.semaphore(name, { capacity }), wants: { permits, capacity } };
    }
    case 'readWrite': {
      const { read, write: writer } = locks.readWrite(name);
      const permits = write ? READ_WRITE_CAPACITY : 1;
      return { lockable: write ? writer : read, wants: { permits, capacity: READ_WRITE_CAPACITY } };
    }
  }
}

async function takeATurn(world: World, resident: Resident, plan: Plan, dice: Dice): Promise<void> {
  const { key, wants, lockable, options, waitMs, verb } = plan;
  const call = world.calls.begin({
    resident,
    key: storeKeyOf(key.name),
    what: 'acquire',
    wants,
    boundMs: waitMs + SETTLES_MS,
  });
  const settled = (granted: boolean): void => {
    plan.aborting?.cancel();
    world.waited(call, waitMs, granted);
  };
  let releasing: Call | null = null;
  try {
    if (verb === 'withLock') {
      await lockable.withLock(async (lease) => {
        settled(true);
        await hold(world, resident, plan, lease, dice);
        await passOn(world, resident, plan, lease, dice);
        releasing = beginRelease(world, resident, plan);
      }, options);
      return;
    }
    const lease = await lockable[verb](options);
    settled(lease !== null);
    if (!lease) return;
    await hold(world, resident, plan, lease, dice);
    await passOn(world, resident, plan, lease, dice);
    releasing = beginRelease(world, resident, plan);
    await lease.release();
  } catch (error) {
    settled(false);
    world.sort(error, resident, key.name);
  } finally {
    if (releasing) world.calls.end(releasing);
  }
}

/** Some hand it off instead of releasing it; they release all the same, as users do, and it does nothing. */
async function passOn(world: World, resident: Resident, plan: Plan, lease: Lease, dice: Dice): Promise<void> {
  const { handoffShare } = resident.crew.habits;
  // Where nobody does, no dice are thrown: the worlds of old seeds stay as they were.
  if (handoffShare === 0 || !dice.chance(handoffShare)) return;
  const { key, wants, ttlMs } = plan;
  await handOff(world, resident, { name: key.name, wants, ttlMs }, lease, dice);
}

function beginRelease(world: World, resident: Resident, { key, wants }: Plan): Call {
  return world.calls.begin({
    resident,
    key: storeKeyOf(key.name),
    what: 'release',
    wants,
    boundMs: ANSWERS_MS,
  });
}

/** The work itself: looks at its lease now and then, as careful users do. */
async function hold(world: World, resident: Resident, plan: Plan, lease: Lease, dice: Dice): Promise<void> {
  const { process } = resident;
  const belief = world.begin(resident, plan.key.name, lease, dice);
  if (!belief) return;
  try {
    if (plan.renewMs !== null) await renew(world, resident, plan, lease);
    const steps = dice.chance(0.5) ? 1 : 3;
    for (let step = 0; step < steps && !lease.signal.aborted; step++) {
      if (plan.workMs > 0) await process.sleep(plan.workMs / steps);
      world.beliefs.check(belief);
    }
    world.beliefs.check(belief);
  } finally {
    if (lease.state === 'lost') world.tally.losses += 1;
    world.beliefs.end(belief);
  }
}

async function renew(world: World, resident: Resident, plan: Plan, lease: Lease): Promise<void> {
  const { key, wants, renewMs } = plan;
  const call = world.calls.begin({
    resident,
    key: storeKeyOf(key.name),
    what: 'renew',
    wants,
    boundMs: ANSWERS_MS,
  });
  try {
    await (renewMs ? lease.renew(renewMs) : lease.renew());
  } catch (error) {
    world.sort(error, resident, key.name);
  } finally {
    world.calls.end(call);
  }
}

/** Whether it is one of the ways in which a call may end that are nobody's fault. */
export function isExpected(error: unknown): 'timeout' | 'loss' | 'store' | 'abort' | null {
  if (error === GAVE_UP) return 'abort';
  if (error instanceof AcquireTimeoutError) return 'timeout';
  if (error instanceof LeaseLostError) return 'loss';
  if (error instanceof StoreError) return 'store';
  return null;
}
