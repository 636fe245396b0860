/** Users that hand their lease off to another process, which may adopt it too late, or never. */

import type { Call, Wants } from './calls.js';
import type { Client } from './client.js';
import { type Lease, StoreError } from './library.js';
import type { RandomSource } from './random-source.js';
import type { Simulation } from './simulation.js';

/** How long the handoff string travels, as a share of the ttl: sometimes too long. */
const ON_ITS_WAY = [0.001, 1.3] as const;
const ATTEMPTS = 3;

interface Handed {
  readonly name: string;
  readonly wants: Wants;
  readonly ttlMs: number;
  /** An adopted lease keeps it. */
  readonly maxHoldMs: number | null;
}

export async function handOff(
  simulation: Simulation,
  client: Client,
  handed: Handed,
  lease: Lease,
  random: RandomSource,
): Promise<void> {
  const call = begin(simulation, client, handed, 'handoff');
  try {
    const handoff = await lease.handoff();
    simulation.handedOff(handed.name, lease);
    const [first, ...others] = simulation.clients.filter(({ isClosing }) => !isClosing);
    // The adopting process works independently of this one.
    if (first) void goOn(simulation, random.pick([first, ...others]), handed, handoff, random.fork());
  } catch (error) {
    simulation.countError(error, client, handed.name);
  } finally {
    simulation.calls.end(call);
  }
}

async function goOn(
  simulation: Simulation,
  client: Client,
  handed: Handed,
  handoff: string,
  random: RandomSource,
): Promise<void> {
  const { process, workload } = client;
  const waiting = begin(simulation, client, handed, 'adopt');
  await process.sleep(handed.ttlMs * random.scaled(ON_ITS_WAY));
  simulation.calls.end(waiting);
  try {
    const lease = await adopt(simulation, client, handed, handoff);
    if (!lease) return;
    const tracked = simulation.begin(client, handed.name, lease, random, 'adopted', handed.maxHoldMs);
    await process.sleep(random.scaled(workload.behaviour.workMs));
    if (tracked) {
      simulation.leases.check(tracked);
      simulation.leases.end(tracked);
    }
    const call = begin(simulation, client, handed, 'release');
    await lease.release().finally(() => simulation.calls.end(call));
  } catch (error) {
    simulation.countError(error, client, handed.name);
  }
}

/** Retries an adoption without answer: the string is valid until the ttl is over. */
async function adopt(
  simulation: Simulation,
  client: Client,
  handed: Handed,
  handoff: string,
): Promise<Lease | null> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const call = begin(simulation, client, handed, 'adopt');
    try {
      return await client.locks.adopt(handoff);
    } catch (error) {
      if (!(error instanceof StoreError) || attempt === ATTEMPTS) throw error;
    } finally {
      simulation.calls.end(call);
    }
  }
  return null;
}

function begin(simulation: Simulation, client: Client, { name, wants }: Handed, what: Call['what']): Call {
  return simulation.calls.begin(client, name, what, wants);
}
