/** The users: acquire, work, give up, renew, release, until the simulation ends. */

import { type Call, SETTLES_MS, type Wants } from './calls.js';
import type { Client } from './client.js';
import { acquireSeveral } from './groups.js';
import { handOff } from './handoffs.js';
import {
  AcquireTimeoutError,
  type Lease,
  LeaseLostError,
  type Lockable,
  READ_WRITE_CAPACITY,
  type SharedOptions,
  StoreError,
  type Timer,
} from './library.js';
import type { KeySpec } from './profile.js';
import type { RandomSource } from './random-source.js';
import type { Simulation } from './simulation.js';

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
  /** Renew to at least this long; 0 for a plain renewal, null for none. */
  readonly renewMs: number | null;
  readonly maxHoldMs: number | null;
}

export async function work(simulation: Simulation, client: Client, random: RandomSource): Promise<void> {
  const { process, workload } = client;
  const isOver = (): boolean => simulation.isEnding || client.isClosing;
  while (!isOver()) {
    await process.sleep(random.scaled(workload.behaviour.thinkMs));
    if (isOver()) return;
    if (random.chance(workload.behaviour.groupShare)) await acquireSeveral(simulation, client, random);
    else await acquireOnce(simulation, client, planOf(simulation, client, random), random);
  }
}

function planOf(simulation: Simulation, client: Client, random: RandomSource): Plan {
  const { behaviour } = client.workload;
  const key = simulation.pickKey(random);
  const write = random.chance(behaviour.writeShare);
  const { lockable, wants } = lockableOf(client, key, write, random);
  const isTry = random.chance(behaviour.tryShare);
  const waitMs = isTry && random.chance(0.5) ? 0 : random.pick(behaviour.waitMs);
  const ttl = random.pick(behaviour.ttlMs);
  const abort = waitMs > 0 && random.chance(behaviour.abortShare) ? new AbortController() : null;
  if (abort) simulation.result.fault('abort');
  const abortIn = abort ? random.between(0, waitMs / 4) : 0;
  const aborting = abort ? client.process.clock.timer(abortIn, () => abort.abort(GAVE_UP)) : null;
  const noRenew = random.chance(behaviour.noRenewShare);
  const options: SharedOptions = {
    ttl,
    wait: waitMs,
    ...(wants.permits > 1 && key.kind === 'semaphore' ? { permits: wants.permits } : {}),
    ...(abort ? { signal: abort.signal } : {}),
    ...(random.chance(behaviour.minHoldShare) ? { minHold: random.scaled(MIN_HOLD_MS) } : {}),
    ...(random.chance(behaviour.metadataShare) ? { metadata: { by: client.process.name } } : {}),
    ...(noRenew ? { renew: false } : {}),
  };
  const renews = random.chance(behaviour.renewShare);
  const renewMs = renews
    ? random.chance(0.5)
      ? Math.round(ttl * random.between(...behaviour.stretch))
      : 0
    : null;
  // A share of 0 draws no number, so that other profiles keep their runs per seed.
  const isLimited = behaviour.maxHoldShare > 0 && random.chance(behaviour.maxHoldShare);
  const maxHoldMs = isLimited ? Math.round(ttl * random.between(...behaviour.maxHold)) : null;
  const overstays = noRenew && random.chance(behaviour.overstayShare);
  const usualMs = maxHoldMs === null ? random.scaled(behaviour.workMs) : random.between(0, 2 * maxHoldMs);
  const workMs = overstays ? 1.2 * (renewMs || ttl) : usualMs;
  const verb = isTry ? 'tryAcquire' : random.chance(0.5) ? 'acquire' : 'withLock';
  const limited = maxHoldMs === null ? options : { ...options, maxHold: maxHoldMs };
  return {
    key,
    wants,
    ttlMs: ttl,
    lockable,
    options: limited,
    waitMs,
    aborting,
    verb,
    workMs,
    renewMs,
    maxHoldMs,
  };
}

function lockableOf({ locks }: Client, key: KeySpec, write: boolean, random: RandomSource) {
  const { name, kind, capacity = 1 } = key;
  switch (kind) {
    case 'mutex': {
      const lockable: Lockable<Lease, SharedOptions> = {
        acquire: (options) => locks.acquire(name, options),
        tryAcquire: (options) => locks.tryAcquire(name, options),
        withLock: (run, options) => locks.withLock(name, run, options),
        tryWithLock: (run, options) => locks.tryWithLock(name, run, options),
      };
      return { lockable, wants: { permits: 1, capacity: 1 } };
    }
    case 'semaphore': {
      const permits = random.chance(0.8) ? 1 : 1 + Math.floor(random.next() * capacity);
      return { lockable: locks.semaphore(name, { capacity }), wants: { permits, capacity } };
    }
    case 'readWrite': {
      const { read, write: writer } = locks.readWrite(name);
      const permits = write ? READ_WRITE_CAPACITY : 1;
      return { lockable: write ? writer : read, wants: { permits, capacity: READ_WRITE_CAPACITY } };
    }
  }
}

async function acquireOnce(
  simulation: Simulation,
  client: Client,
  plan: Plan,
  random: RandomSource,
): Promise<void> {
  const { key, wants, lockable, options, waitMs, verb } = plan;
  const call = simulation.calls.begin(client, key.name, 'acquire', wants, waitMs + SETTLES_MS);
  const settled = (granted: boolean): void => {
    plan.aborting?.cancel();
    simulation.waited(call, waitMs, granted);
  };
  let releasing: Call | null = null;
  try {
    if (verb === 'withLock') {
      await lockable.withLock(async (lease) => {
        settled(true);
        await hold(simulation, client, plan, lease, random);
        await maybeWorkInside(simulation, client, plan, lease, random);
        await maybeHandOff(simulation, client, plan, lease, random);
        releasing = simulation.calls.begin(client, key.name, 'release', wants);
      }, options);
      return;
    }
    const lease = await lockable[verb](options);
    settled(lease !== null);
    if (!lease) return;
    await hold(simulation, client, plan, lease, random);
    await maybeHandOff(simulation, client, plan, lease, random);
    releasing = simulation.calls.begin(client, key.name, 'release', wants);
    await lease.release();
  } catch (error) {
    settled(false);
    simulation.countError(error, client, key.name);
  } finally {
    if (releasing) simulation.calls.end(releasing);
  }
}

/** Some work calls for the lock again that it runs under. */
async function maybeWorkInside(
  simulation: Simulation,
  client: Client,
  { key, lockable, options }: Plan,
  lease: Lease,
  random: RandomSource,
): Promise<void> {
  const { nestedShare } = client.workload.behaviour;
  if (nestedShare === 0 || !random.chance(nestedShare) || !lease.held) return;
  try {
    await lockable.withLock(() => undefined, { ...options, reentrant: true });
  } finally {
    if (lease.state === 'released') simulation.violate('ended by inner work', key.name, client);
  }
}

/** Some users hand off before they release; the release then does nothing. */
async function maybeHandOff(
  simulation: Simulation,
  client: Client,
  plan: Plan,
  lease: Lease,
  random: RandomSource,
): Promise<void> {
  const { handoffShare } = client.workload.behaviour;
  // A share of 0 draws no number, so that other profiles keep their runs per seed.
  if (handoffShare === 0 || !random.chance(handoffShare)) return;
  const { key, wants, ttlMs, maxHoldMs } = plan;
  await handOff(simulation, client, { name: key.name, wants, ttlMs, maxHoldMs }, lease, random);
}

/** Holds the lease and works; careful users check it now and then. */
async function hold(
  simulation: Simulation,
  client: Client,
  plan: Plan,
  lease: Lease,
  random: RandomSource,
): Promise<void> {
  const { process } = client;
  const tracked = simulation.begin(client, plan.key.name, lease, random, 'fresh', plan.maxHoldMs);
  if (!tracked) return;
  try {
    if (plan.renewMs !== null) await renew(simulation, client, plan, lease);
    const steps = random.chance(0.5) ? 1 : 3;
    for (let step = 0; step < steps && !lease.signal.aborted; step++) {
      if (plan.workMs > 0) await process.sleep(plan.workMs / steps);
      simulation.leases.check(tracked);
    }
    simulation.leases.check(tracked);
  } finally {
    if (lease.state === 'lost') simulation.result.losses += 1;
    simulation.leases.end(tracked);
  }
}

async function renew(simulation: Simulation, client: Client, plan: Plan, lease: Lease): Promise<void> {
  const { key, wants, renewMs } = plan;
  const call = simulation.calls.begin(client, key.name, 'renew', wants);
  try {
    await (renewMs ? lease.renew(renewMs) : lease.renew());
  } catch (error) {
    simulation.countError(error, client, key.name);
  } finally {
    simulation.calls.end(call);
  }
}

/** Classifies errors that are part of normal operation. */
export function isExpected(error: unknown): 'timeout' | 'loss' | 'store' | 'abort' | null {
  if (error === GAVE_UP) return 'abort';
  if (error instanceof AcquireTimeoutError) return 'timeout';
  if (error instanceof LeaseLostError) return 'loss';
  if (error instanceof StoreError) return 'store';
  return null;
}
