/**
 * Locks of instances in LockServiceCentral's records, on engines that replace a record on the condition that its version
 * is the one seen: the stored owner and instance are the holder, so a lock that was acquired at one service can be
 * acquired again, renewed and released at the other.
 *
 * Each operation reads the record, decides as the service does, by the engine's clock (an expiry counts from the latest time
 * possible, and has passed by the earliest), and writes if the record is unchanged. A release leaves a free record, so that
 * tokens and marks of the library go on.
 *
 * A write that is executed late finds another version. If the client may send a write twice, `holdfastOperation` has the
 * operation's id, which shows that the first write was executed.
 */
import {
  EMPTY_STATE,
  expendableAt,
  type Instance,
  type InstanceLease,
  type InstanceLocks,
  type InstanceRenewal,
  type State,
} from '../../protocol/index.js';
import type { CompareAndSwap } from './compare-and-swap.js';
import { TRIES_MAX, tooManyRaces } from './contention.js';
import {
  centralRecords,
  checkedLease,
  isActive,
  isSameInstance,
  leasedRecord,
  ownStateIn,
} from './lock-service-central.js';
import type { Fields, FoundRecord, RecordTable } from './records.js';
import type { Reading, StoreTime } from './register.js';

const OPERATION = 'holdfastOperation';

/** The answer if no write is needed; or the lease to write (null: a free record), and the answer after the write. */
type Decision<T> =
  | { readonly answer: T }
  | { readonly next: InstanceLease | null; readonly renews?: true; readonly outcome: T };

export interface CentralParts<V> {
  readonly table: RecordTable<V>;
  readonly time: StoreTime;
  readonly swap: Pick<CompareAndSwap<never>, 'now' | 'checkOpen'>;
  /** The record of a state. Default: that of `centralRecords`. */
  encode?(key: string, state: State): Fields;
}

export class CentralInstances<V> implements InstanceLocks {
  readonly #table: RecordTable<V>;
  readonly #time: StoreTime;
  readonly #swap: CentralParts<V>['swap'];
  readonly #encode: (key: string, state: State) => Fields;

  constructor({ table, time, swap, encode = centralRecords.encode }: CentralParts<V>) {
    this.#table = table;
    this.#time = time;
    this.#swap = swap;
    this.#encode = encode;
  }

  async read(key: string): Promise<InstanceLease | null> {
    centralRecords.idOf(key);
    const { fields } = await this.#table.get(key);
    const lease = fields && checkedLease(key, fields);
    return lease && isActive(lease, await this.#swap.now()) ? lease : null;
  }

  acquire(
    key: string,
    instance: Instance,
    seconds: number,
    operation: string,
  ): Promise<InstanceLease | null> {
    return this.#change<InstanceLease | null>(key, operation, (lease, now) => {
      if (lease && !isSameInstance(lease, instance) && isActive(lease, now)) return { answer: null };
      const expiry = Math.floor(now.latest / 1_000) + seconds;
      const next = { ...instance, leaseDuration: seconds, expiry };
      return { next, outcome: next };
    });
  }

  renew(
    key: string,
    instance: Instance,
    seconds: number,
    secondsMax: number,
    operation: string,
  ): Promise<InstanceRenewal> {
    let tries = 0;
    return this.#change<InstanceRenewal>(key, operation, (lease, now) => {
      if (!lease || !isSameInstance(lease, instance) || !isActive(lease, now))
        return { answer: { kind: 'lost' } };
      const left = lease.expiry + seconds - Math.floor(now.latest / 1_000);
      if (left > secondsMax) return { answer: { kind: 'too-long', seconds: left } };
      // The first attempt may have been executed before another write: repeating and skipping may both be wrong.
      if (tries++ > 0 && this.#table.repeats)
        throw new Error(`It is unknown whether the renewal of "${key}" was executed.`);
      const { leaseDuration, expiry } = lease;
      const next = { ...lease, leaseDuration: leaseDuration + seconds, expiry: expiry + seconds };
      return { next, renews: true, outcome: { kind: 'renewed', lease: next } };
    });
  }

  release(key: string, instance: Instance, operation: string): Promise<'released' | 'not-held' | 'busy'> {
    let wasHeld = false;
    return this.#change<'released' | 'not-held' | 'busy'>(key, operation, (lease, now) => {
      if (lease && isSameInstance(lease, instance)) {
        wasHeld = true;
        return { next: null, outcome: 'released' };
      }
      // The lock ended between the read and the write: by this release, or by another one.
      if (wasHeld) return { answer: 'released' };
      return { answer: lease && isActive(lease, now) ? 'busy' : 'not-held' };
    });
  }

  async #change<T>(
    key: string,
    operation: string,
    decide: (lease: InstanceLease | null, now: Reading) => Decision<T>,
  ): Promise<T> {
    const table = this.#table;
    centralRecords.idOf(key);
    let found = await table.get(key);
    for (let tries = 1; tries <= TRIES_MAX; tries++) {
      this.#swap.checkOpen();
      const lease = found.fields && checkedLease(key, found.fields);
      const now = await this.#timeFor(lease);
      const { jumps } = this.#time;
      const decision = decide(lease, now);
      if ('answer' in decision) return decision.answer;
      const { next, renews, outcome } = decision;
      const state = numbered(key, found.fields ?? {}, now);
      const fields = {
        // A renewal keeps the token.
        ...(renews ? found.fields : this.#encode(key, state)),
        ...(next && leasedRecord(key, next)),
        ...(table.repeats && { [OPERATION]: operation }),
      };
      const untilMs = Math.max(expendableAt(state), next ? (next.expiry + 2) * 1_000 : 0);
      const put = await table.put(key, fields, found.version, { untilMs, now: now.latest });
      const instead: FoundRecord<V> | null =
        put.kind === 'written' ? null : (put.found ?? (await table.get(key)));
      if (!instead || instead.fields?.[OPERATION] === operation) {
        if (next && this.#time.jumps !== jumps) {
          throw new Error(`A clock stood still while the record of "${key}" was written.`);
        }
        return outcome;
      }
      found = instead;
    }
    throw tooManyRaces(key);
  }

  /** Reads a fresh time before an expired lock is taken. */
  async #timeFor(lease: InstanceLease | null): Promise<Reading> {
    const now = await this.#swap.now();
    if (!lease || isActive(lease, now) || this.#time.isFresh()) return now;
    await this.#time.sample();
    return await this.#swap.now();
  }
}

/** Higher numbers than the record has, so that tokens rise, and a late claim of the library fails. Marks are kept. */
function numbered(key: string, fields: Fields, { latest }: Reading): State {
  const { token, decision, ended, evictions } = ownStateIn(key, fields) ?? EMPTY_STATE;
  const number = Math.max(latest * 1_000, token + 1, decision + 1);
  return { ...EMPTY_STATE, token: number, decision: number, ended, evictions };
}
