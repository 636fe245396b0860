/** Users of several keys: `all` of them together, or `any` of them. */

import { SETTLES_MS } from './calls.js';
import type { Client } from './client.js';
import type { TrackedLease } from './lease-checker.js';
import type { Lease } from './library.js';
import type { RandomSource } from './random-source.js';
import type { Simulation } from './simulation.js';

const WANTS = { permits: 1, capacity: 1 };

export async function acquireSeveral(
  simulation: Simulation,
  client: Client,
  random: RandomSource,
): Promise<void> {
  const names = simulation.profile.keys.filter(({ kind }) => kind === 'mutex').map(({ name }) => name);
  const { behaviour } = client.workload;
  const wait = random.pick(behaviour.waitMs);
  const options = { ttl: random.pick(behaviour.ttlMs), wait };
  const boundMs = 2 * (wait + SETTLES_MS);
  const calls = begin(simulation, client, names, boundMs);
  const settled = (): void => calls.forEach((call) => void simulation.calls.end(call));
  try {
    const { locks } = client;
    if (random.chance(0.5)) {
      const lease = await locks.any(names).tryAcquire(options);
      settled();
      if (lease) await holdAll(simulation, client, [lease], random, () => lease.release());
    } else {
      const group = await locks.all(names).tryAcquire(options);
      settled();
      if (group) await holdAll(simulation, client, group.leases, random, () => group.release());
    }
  } catch (error) {
    settled();
    simulation.countError(error, client, names.join(' and '));
  }
}

function begin(simulation: Simulation, client: Client, names: readonly string[], boundMs?: number) {
  return names.map((name) => {
    return simulation.calls.begin(client, name, 'group', WANTS, boundMs);
  });
}

async function holdAll(
  simulation: Simulation,
  client: Client,
  leases: readonly Lease[],
  random: RandomSource,
  release: () => Promise<void>,
): Promise<void> {
  const allTracked: TrackedLease[] = [];
  for (const lease of leases) {
    const tracked = simulation.begin(client, lease.key, lease, random, 'earlier');
    if (tracked) allTracked.push(tracked);
  }
  await client.process.sleep(random.scaled(client.workload.behaviour.workMs));
  for (const tracked of allTracked) {
    simulation.leases.check(tracked);
    simulation.leases.end(tracked);
  }
  const names = leases.map(({ key }) => key);
  const calls = begin(simulation, client, names);
  try {
    await release();
  } finally {
    for (const call of calls) simulation.calls.end(call);
  }
}
