/**
 * Records as keys of etcd: one per lock, replaced only if its `mod_revision` is still the one that was seen (0: there is
 * none). The same transaction puts the wake-ups, and returns the record that is there where it does not apply.
 *
 * Every record is attached to an etcd lease, which deletes it after `expendableAt`; a process uses one etcd lease for many
 * records. So a write that is delayed until its lease is gone fails, instead of bringing an old record back.
 */
import { systemClock } from '../../clock.js';
import { checkVersion, expendableAt, type State, UnsupportedError, type Wake } from '../../protocol/index.js';
import type { Found, Register, Written } from '../compare-and-swap/register.js';
import type { EtcdTime } from './etcd-time.js';
import { type Answer, EtcdRefusal, type Gateway } from './gateway.js';
import { encoded, put, RANGE, TXN, textOf } from './requests.js';

const ABSENT: Found<string> = { state: null, version: '0', lateMs: 0 };
/** An etcd lease lives for twice the time that a record needs, in steps; records are attached to it in the first half. */
const LEASE_STEP_MS = 90_000;
/** The error of the time, by far. */
const SPARE_MS = 10_000;

/** The value of the key is not a record of Holdfast. */
export class NotALockError extends UnsupportedError {}

export class EtcdRegister implements Register<string> {
  readonly absent = ABSENT;
  readonly #gateway: Gateway;
  readonly #time: EtcdTime;
  readonly #prefix: string;
  /** By the time that they serve. */
  readonly #leases = new Map<number, { readonly id: Promise<string>; readonly untilMs: number }>();
  /** The last error that no caller was told; undefined for none. */
  error: unknown;

  constructor(gateway: Gateway, time: EtcdTime, prefix: string) {
    this.#gateway = gateway;
    this.#time = time;
    this.#prefix = prefix;
  }

  async read(key: string): Promise<Found<string>> {
    return foundIn(await this.#gateway.call(RANGE, { key: encoded(this.nameOf(key)) }), key);
  }

  async write(
    key: string,
    next: State,
    seen: Found<string>,
    now: number,
    wakes: readonly Wake[] = [],
  ): Promise<Written<string>> {
    const name = this.nameOf(key);
    const value = JSON.stringify(next);
    const keptMs = expendableAt(next) - now;
    const answer = await this.#withLease(keptMs, (lease) =>
      this.#gateway.call(TXN, {
        compare: [{ target: 'MOD', key: encoded(name), mod_revision: seen.version }, this.#time.condition],
        success: [put(name, value, lease), ...this.#puts(key, wakes, lease)],
        failure: [{ request_range: { key: encoded(name) } }, this.#time.conditionRange],
      }),
    );
    const revision = answer.header?.revision;
    if (answer.succeeded && revision !== undefined) {
      return { kind: 'written', version: revision, lateMs: 0, woken: true };
    }
    const [record, clock] = (answer.responses ?? []).map(({ response_range }) => response_range ?? {});
    const generation = clock?.kvs?.[0];
    this.#time.check(generation ? textOf(generation.value) : null);
    return { kind: 'changed', found: record ? foundIn(record, key) : null };
  }

  wake(key: string, wakes: readonly Wake[]): void {
    const send = (lease: string): Promise<Answer> =>
      this.#gateway.call(TXN, { success: this.#puts(key, wakes, lease) });
    this.#withLease(0, send).catch((error: unknown) => {
      this.error = error;
    });
  }

  nameOf(key: string): string {
    return `${this.#prefix}k/${key}`;
  }

  /** Keys of the same name are overwritten: there are as many as inboxes and reasons. */
  #puts(key: string, wakes: readonly Wake[], lease: string): readonly object[] {
    const names = new Set(wakes.map(({ inbox, why }) => `${inboxPrefix(this.#prefix, inbox)}${why}`));
    return [...names].map((name) => put(name, key, lease));
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

function foundIn({ kvs }: Answer, key: string): Found<string> {
  const record = kvs?.[0];
  if (!record) return ABSENT;
  return { state: stateIn(textOf(record.value), key), version: record.mod_revision, lateMs: 0 };
}

export function stateIn(text: string, key: string): State {
  const isRecord = text.startsWith('{') && text.endsWith('}');
  const state = isRecord ? (JSON.parse(text) as State) : null;
  if (!state || !('version' in state)) {
    throw new NotALockError(`The value of "${key}" in etcd is not a lock: other software wrote it.`, { key });
  }
  checkVersion(state.version, key);
  return state;
}
