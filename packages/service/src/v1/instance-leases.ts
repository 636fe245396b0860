/**
 * Leases on the table of LockServiceCentral: the identity is the stored owner and instance, so both services know each
 * other's locks. Every operation is one conditional write. It is sent once, because a renewal repeated after an unknown
 * outcome could add twice.
 */
import type { HoldId, InstanceLease, InstanceLocks } from 'holdfast/protocol';
import { randomId } from '../clock.js';
import type { ServiceClient } from '../waiting/service-client.js';
import { type Bound, holdOf, type Identity, type Lease, type Leases, type Look } from './leases.js';

export class InstanceLeases implements Leases {
  readonly #client: ServiceClient;
  readonly #locks: InstanceLocks;

  constructor(client: ServiceClient, locks: InstanceLocks) {
    this.#client = client;
    this.#locks = locks;
  }

  async look(key: string): Promise<Look | null> {
    const lease = await this.#read(key);
    return lease && { owner: lease.owner, expiry: lease.expiry };
  }

  async holdOf(who: Identity): Promise<HoldId | null> {
    const lease = await this.#read(who.key);
    return lease?.owner === who.owner && lease.instanceId === who.instanceId ? countedUnder(who) : null;
  }

  async acquire(who: Identity, seconds: number): Promise<Lease | null> {
    const { key } = who;
    const lease = await this.#client.writeBy('acquire', key, () =>
      this.#locks.acquire(key, instanceOf(who), seconds, randomId()),
    );
    return lease && leaseOf(who, lease);
  }

  async renew(who: Identity, seconds: number, { check, ttlMsMax }: Bound): Promise<Lease | null> {
    const { key } = who;
    const secondsMax = Math.floor(ttlMsMax / 1_000);
    const outcome = await this.#client.writeBy('renewal', key, () =>
      this.#locks.renew(key, instanceOf(who), seconds, secondsMax, randomId()),
    );
    if (outcome.kind === 'too-long') check(outcome.seconds * 1_000);
    return outcome.kind === 'renewed' ? leaseOf(who, outcome.lease) : null;
  }

  async release(who: Identity): Promise<HoldId | null | false> {
    const { key } = who;
    const outcome = await this.#client.writeBy('release', key, () =>
      this.#locks.release(key, instanceOf(who), randomId()),
    );
    if (outcome === 'busy') return false;
    return outcome === 'released' ? countedUnder(who) : null;
  }

  #read(key: string): Promise<InstanceLease | null> {
    return this.#client.readBy(key, () => this.#locks.read(key));
  }
}

function instanceOf({ owner, instanceId }: Identity): {
  readonly owner: string;
  readonly instanceId: string;
} {
  return { owner, instanceId };
}

function leaseOf(who: Identity, { leaseDuration, expiry }: InstanceLease): Lease {
  return { hold: countedUnder(who), leaseDuration, expiry };
}

/** The same hold for every lease of an identity on a key: there is at most one. */
function countedUnder(who: Identity): HoldId {
  return holdOf(who, '');
}
