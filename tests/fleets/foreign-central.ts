/**
 * LockServiceCentral where it reads a record, decides by its own clock, and replaces or deletes the record if nobody was
 * faster: on etcd and Firestore. Seconds everywhere; a renewal adds to what is there.
 */
import type { Foreign, ForeignLock, MachineClock } from './foreign.js';

/** The fields that it writes. */
export interface CentralFields {
  readonly namespace: string;
  readonly lockName: string;
  readonly owner: string;
  readonly instanceId: string;
  readonly leaseDuration: number;
  readonly expiry: number;
}

/** Null deletes the record; undefined leaves it as it is. */
export type Change = (found: CentralFields | null) => CentralFields | null | undefined;

/** One operation on a record, atomic. False where nobody could be faster than the others often enough. */
export type Operate = (id: string, change: Change, now: number) => Promise<boolean>;

/** A lock as the tests of LockServiceCentral need it: whoever has owner and instance has the lock. */
export interface Central extends Foreign {
  acquire(name: string, owner: string, leaseMs: number, instanceId?: string): Promise<ForeignLock | null>;
  lockOf(name: string, owner: string, instanceId: string): ForeignLock;
}

let instances = 0;

export class CentralOnRecords implements Central {
  readonly #operate: Operate;
  readonly #clock: MachineClock;
  readonly #namespace: string;

  constructor(operate: Operate, clock: MachineClock = Date.now, namespace = 'default') {
    this.#operate = operate;
    this.#clock = clock;
    this.#namespace = namespace;
  }

  async acquire(
    name: string,
    owner: string,
    leaseMs: number,
    instanceId = `instance-${process.pid}-${instances++}`,
  ): Promise<ForeignLock | null> {
    const leaseDuration = Math.ceil(leaseMs / 1_000);
    const next = { namespace: this.#namespace, lockName: name, owner, instanceId, leaseDuration };
    const isDone = await this.#run(name, (found, now) => {
      const isTakeable = !found || isOf(found, owner, instanceId) || found.expiry < now;
      return isTakeable ? { ...next, expiry: now + leaseDuration } : 'failed';
    });
    return isDone ? this.lockOf(name, owner, instanceId) : null;
  }

  lockOf(name: string, owner: string, instanceId: string): ForeignLock {
    return {
      owner,
      heartbeat: (ms) =>
        this.#run(name, (found, now) => {
          if (!found || !isOf(found, owner, instanceId) || found.expiry < now) return 'failed';
          const seconds = Math.ceil(ms / 1_000);
          const { namespace, lockName, leaseDuration, expiry } = found;
          const names = { namespace, lockName, owner, instanceId };
          return { ...names, leaseDuration: leaseDuration + seconds, expiry: expiry + seconds };
        }),
      release: () =>
        this.#run(name, (found, now) => {
          if (!found || found.expiry < now) return undefined;
          return isOf(found, owner, instanceId) ? null : 'failed';
        }),
    };
  }

  async #run(
    name: string,
    decide: (found: CentralFields | null, now: number) => CentralFields | null | undefined | 'failed',
  ): Promise<boolean> {
    const now = Math.floor(this.#clock() / 1_000);
    let isFailed = false;
    const change: Change = (found) => {
      const next = decide(found, now);
      isFailed = next === 'failed';
      return next === 'failed' ? undefined : next;
    };
    const isDone = await this.#operate(`${this.#namespace}:${name}`, change, now);
    return isDone && !isFailed;
  }
}

function isOf(found: CentralFields, owner: string, instanceId: string): boolean {
  return found.owner === owner && found.instanceId === instanceId;
}
