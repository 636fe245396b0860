/**
 * Records as keys of etcd: one per lock, replaced only if its `mod_revision` is still the one that was seen (0: there is
 * none). The same transaction puts the wake-ups, and returns the record that is there where it does not apply.
 *
 * Every record is attached to an etcd lease, which deletes it once it is expendable; a process uses one etcd lease for many
 * records. So a write that is delayed until its lease is gone fails, instead of bringing an old record back.
 */
import { systemClock } from '../../clock.js';
import { checkVersion, type State, type Wake } from '../../protocol/index.js';
import {
  type Fields,
  type FoundRecord,
  NotALockError,
  type PutOutcome,
  parsedObject,
  type RecordLayout,
  type RecordTable,
} from '../compare-and-swap/records.js';
import type { EtcdTime } from './etcd-time.js';
import { type Answer, EtcdRefusal, type Gateway, type KeyValue } from './gateway.js';
import { encoded, put, RANGE, TXN, textOf } from './requests.js';

const ABSENT: FoundRecord<string> = { fields: null, version: '0' };
/** An etcd lease lives for twice the time that a record needs, in steps; records are attached to it in the first half. */
const LEASE_STEP_MS = 90_000;
/** The error of the time, by far. */
const SPARE_MS = 10_000;

/** The state as JSON, below `k/`. */
export const nativeRecords: RecordLayout = {
  idOf: (key) => `k/${key}`,
  startOf: (prefix) => `k/${prefix}`,
  keyIn: (id) => (id.startsWith('k/') ? id.slice(2) : null),
  encode: (_key, state) => ({ ...state }),
  decode(key, fields) {
    if (!('version' in fields)) {
      throw new NotALockError(`The value of "${key}" in etcd is not a lock: other software wrote it.`, key);
    }
    checkVersion(fields.version, key);
    return fields as unknown as State;
  },
};

export class EtcdRecords implements RecordTable<string> {
  readonly absent = ABSENT.version;
  readonly #gateway: Gateway;
  readonly #time: EtcdTime;
  readonly #prefix: string;
  readonly #layout: RecordLayout;
  /** By the time that they serve. */
  readonly #leases = new Map<number, { readonly id: Promise<string>; readonly untilMs: number }>();
  /** The last error that no caller was told; undefined for none. */
  error: unknown;

  constructor(gateway: Gateway, time: EtcdTime, prefix: string, layout: RecordLayout) {
    this.#gateway = gateway;
    this.#time = time;
    this.#prefix = prefix;
    this.#layout = layout;
  }

  async get(key: string): Promise<FoundRecord<string>> {
    return foundIn(await this.#gateway.call(RANGE, { key: encoded(this.#nameOf(key)) }));
  }

  async put(
    key: string,
    fields: Fields,
    seen: string,
    { untilMs, now }: { readonly untilMs: number; readonly now: number },
    wakes: readonly Wake[] = [],
  ): Promise<PutOutcome<string>> {
    const name = this.#nameOf(key);
    const value = JSON.stringify(fields);
    const answer = await this.#withLease(untilMs - now, (lease) =>
      this.#gateway.call(TXN, {
        compare: [{ target: 'MOD', key: encoded(name), mod_revision: seen }, this.#time.condition],
        success: [put(name, value, lease), ...this.#puts(key, wakes, lease)],
        failure: [{ request_range: { key: encoded(name) } }, this.#time.conditionRange],
      }),
    );
    const revision = answer.header?.revision;
    if (answer.succeeded && revision !== undefined) {
      return { kind: 'written', version: revision, woken: true };
    }
    const [record, clock] = (answer.responses ?? []).map(({ response_range }) => response_range ?? {});
    const generation = clock?.kvs?.[0];
    this.#time.check(generation ? textOf(generation.value) : null);
    return { kind: 'changed', found: record ? foundIn(record) : null };
  }

  wake(key: string, wakes: readonly Wake[]): void {
    const send = (lease: string): Promise<Answer> =>
      this.#gateway.call(TXN, { success: this.#puts(key, wakes, lease) });
    this.#withLease(0, send).catch((error: unknown) => {
      this.error = error;
    });
  }

  /** Keys of the same name are overwritten: there are as many as inboxes and reasons. */
  #puts(key: string, wakes: readonly Wake[], lease: string): readonly object[] {
    const names = new Set(wakes.map(({ inbox, why }) => `${inboxPrefix(this.#prefix, inbox)}${why}`));
    return [...names].map((name) => put(name, key, lease));
  }

  #nameOf(key: string): string {
    return this.#prefix + this.#layout.idOf(key);
  }

  /** Once more where the etcd lease is gone: this process was paused. */
  async #withLease(keptMs: number, send: (lease: string) => Promise<Answer>): Promise<Answer> {
    try {
      return await send(await this.#leaseFor(keptMs));
    } catch (error) {
      if (!(error instanceof EtcdRefusal && error.isLeaseGone)) throw error;
      this.#leases.clear();
      return await send(await this.#leaseFor(keptMs));
    }
  }

  #leaseFor(keptMs: number): Promise<string> {
    const steps = Math.max(1, (keptMs + SPARE_MS) / LEASE_STEP_MS);
    const servesMs = LEASE_STEP_MS * 2 ** Math.ceil(Math.log2(steps));
    const nowMs = systemClock.monotonicMs();
    const known = this.#leases.get(servesMs);
    if (known && nowMs < known.untilMs) return known.id;
    const id = this.#gateway
      .call('/v3/lease/grant', { TTL: String((2 * servesMs) / 1_000) })
      .then(({ ID }) => String(ID));
    const lease = { id, untilMs: nowMs + servesMs };
    this.#leases.set(servesMs, lease);
    id.catch(() => {
      if (this.#leases.get(servesMs) === lease) this.#leases.delete(servesMs);
    });
    return id;
  }
}

/** The beginning of the keys of an inbox. */
export function inboxPrefix(prefix: string, inbox: string): string {
  return `${prefix}w/${inbox}/`;
}

function foundIn({ kvs }: Answer): FoundRecord<string> {
  const record = kvs?.[0];
  return record ? { fields: fieldsIn(record), version: record.mod_revision } : ABSENT;
}

/** No fields where other software wrote a value of another kind. */
export function fieldsIn({ value }: KeyValue): Fields {
  return parsedObject(textOf(value)) ?? {};
}
