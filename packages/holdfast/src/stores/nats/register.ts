/**
 * One message a key. The server stores a message only if the last one of its subject has the expected sequence (0: there
 * is none), so a record is replaced only by who saw it. What is there is read from the stream's leader, never by a
 * direct get, which any replica answers, with what it has (F22).
 */
import { type Clock, systemClock } from '../../clock.js';
import type { Command, State, Wake } from '../../protocol/index.js';
import { UnsupportedError } from '../../protocol/index.js';
import type { Found, Register, Written } from '../compare-and-swap/register.js';
import type { TimeEstimate } from '../compare-and-swap/time-estimate.js';
import { type Bucket, subjectOf } from './bucket.js';
import type { Cleanup } from './cleanup.js';
import { askApi, type NatsConnection, type StoredMessage } from './connection.js';
import type { Layout, Message, Stored } from './layout.js';
import { LATE_MS } from './record.js';
import { API, isRefusal, mayLackBucket } from './trouble.js';
import { comparesTooEarly } from './versions.js';
import type { Writes } from './writes.js';

export interface RegisterParts {
  readonly connection: NatsConnection;
  readonly bucketName: string;
  readonly bucket: Bucket;
  readonly layout: Layout;
  readonly time: TimeEstimate;
  readonly cleanup: Cleanup;
  readonly writes: Writes;
  readonly wake: (key: string, wakes: readonly Wake[]) => void;
  readonly clock?: Clock;
}

/** After a pause of the whole process an answer may come this late. Others may read the record in another way then. */
const ANSWER_LATE_MS = LATE_MS / 2;

/** Of how many keys the name in the bucket is remembered: an operation needs it twice. */
const NAMES_MAX = 10_000;

const ABSENT: Found<number> = { state: null, version: 0, lateMs: 0 };

export class NatsRegister implements Register<number> {
  readonly absent = ABSENT;
  readonly #parts: RegisterParts;
  readonly #clock: Clock;
  readonly #names = new Map<string, string>();

  constructor(parts: RegisterParts) {
    this.#parts = parts;
    this.#clock = parts.clock ?? systemClock;
  }

  async read(key: string): Promise<Found<number>> {
    const { connection, bucketName, bucket, layout, time } = this.#parts;
    const question = { last_by_subj: subjectOf(bucketName, this.#kvKeyOf(key)) };
    let message: StoredMessage | undefined;
    try {
      ({ message } = await askApi(connection, `STREAM.MSG.GET.${bucket.stream}`, question));
    } catch (error) {
      if (isRefusal(error, API.noMessage)) return ABSENT;
      if (mayLackBucket(error)) bucket.suspect();
      throw error;
    }
    if (!message) throw new Error(`JetStream answered without a message for the key "${key}".`);
    const stored = storedOf(message);
    time.noteAtLeast(this.#clock.monotonicMs(), stored.storedAt);
    return { ...layout.decode(stored, key), version: stored.revision };
  }

  async write(key: string, next: State, seen: Found<number>, now: number): Promise<Written<number>> {
    const { bucket, layout, cleanup } = this.#parts;
    // Deleted by this process itself: then it knows that nothing is there, unless somebody came since.
    const base = cleanup.isGone(seen.version) ? { ...seen, version: 0 } : seen;
    const message = layout.encode(next, base, now);
    if (message === null) return await this.#leave(key, seen);
    try {
      if (base.version > 0 && !bucket.isSame() && !(await bucket.confirm())) {
        return { kind: 'changed', found: null };
      }
      return await this.#store(key, message, base.version, next);
    } catch (error) {
      if (isRefusal(error, API.wrongLastSequence, API.wrongLastSequenceUnnamed)) {
        return { kind: 'changed', found: await this.#after(base.version, key) };
      }
      if (mayLackBucket(error)) bucket.suspect();
      throw error;
    }
  }

  /** Revisions never go back: a leader that slept and does not know of the next one yet shows what it remembers. */
  async #after(version: number, key: string): Promise<Found<number>> {
    const found = await this.read(key);
    if (found.version === 0 || found.version >= version) return found;
    throw new Error(`JetStream showed an older record of "${key}" than it had stored before.`);
  }

  async #store(key: string, message: Message, version: number, next: State): Promise<Written<number>> {
    const { bucketName, writes, cleanup } = this.#parts;
    const { payload, operation, lagMs = 0 } = message;
    const kvKey = this.#kvKeyOf(key);
    let headers = `Nats-Expected-Last-Subject-Sequence: ${version}\r\n`;
    if (operation !== null) headers += `KV-Operation: ${operation}\r\n`;
    if (version > 0 && this.#comparesTooEarly()) headers += `Nats-Msg-Id: ${version}:${kvKey}\r\n`;
    const sentMs = this.#clock.monotonicMs();
    const { seq, duplicate } = await writes.store(subjectOf(bucketName, kvKey), payload, headers);
    if (duplicate === true) return { kind: 'changed', found: null };
    if (seq === undefined) throw new Error(`JetStream stored the key "${key}" without saying where.`);
    cleanup.wrote(kvKey, seq, next);
    // The stamp was given before the answer came.
    const tookMs = Math.ceil(this.#clock.monotonicMs() - sentMs);
    if (tookMs >= ANSWER_LATE_MS) throw new Error(`JetStream answered too late: after ${tookMs} ms.`);
    return { kind: 'written', version: seq, lateMs: Math.max(tookMs, lagMs) };
  }

  #kvKeyOf(key: string): string {
    const known = this.#names.get(key);
    if (known !== undefined) return known;
    const name = this.#parts.layout.kvKeyOf(key);
    if (this.#names.size >= NAMES_MAX) this.#names.clear();
    this.#names.set(key, name);
    return name;
  }

  #comparesTooEarly(): boolean {
    const { bucket, connection } = this.#parts;
    return comparesTooEarly(connection.info, bucket.config?.num_replicas ?? 1);
  }

  /** Writes nothing, and makes sure that what was decided on is still there. */
  async #leave(key: string, seen: Found<number>): Promise<Written<number>> {
    const found = await this.read(key);
    if (found.version !== seen.version || found.state === null) return { kind: 'changed', found };
    return { kind: 'written', version: found.version, lateMs: found.lateMs, state: found.state };
  }

  wake(key: string, wakes: readonly Wake[]): void {
    this.#parts.wake(key, wakes);
  }

  /** A record that goes while somebody counts on it would let another in. */
  check(command: Command): void {
    const { bucket, layout } = this.#parts;
    layout.check?.(command);
    this.#kvKeyOf(command.key);
    const askedMs = lastsMs(command, () => this.#parts.time.reading()?.earliest ?? 0);
    if (askedMs <= bucket.ttlMsMax) return;
    throw new UnsupportedError(
      `${Math.ceil(askedMs / 1_000)} s are too long for this bucket: its records go after ` +
        `${Math.floor((2 * bucket.ttlMsMax) / 1_000)} s (max_age), and a lock may be taken for half of that at a time. ` +
        `Take it for less and let it be renewed, or raise the limit: nats stream edit ${bucket.stream} --max-age.`,
      { key: command.key },
    );
  }
}

/** How long what the command leaves has to last. */
function lastsMs(command: Command, now: () => number): number {
  switch (command.kind) {
    case 'claim':
      return command.ttlMs;
    case 'renew':
      return command.added ? command.added.expiresAt + command.added.ms - now() : command.ttlMs;
    case 'release':
      return command.minHoldMs;
    case 'evict':
      return 0;
  }
}

function storedOf({ seq, time, data, hdrs }: StoredMessage): Stored {
  return {
    payload: data === undefined ? '' : Buffer.from(data, 'base64').toString('utf8'),
    storedAt: Math.floor(Date.parse(time)),
    operation: hdrs === undefined ? null : operationOf(Buffer.from(hdrs, 'base64').toString('latin1')),
    revision: seq,
  };
}

/** Newer servers mark what they deleted by age in a way of their own. */
function operationOf(headers: string): Stored['operation'] {
  if (!headers.includes('KV-Operation:') && !headers.includes('Nats-Marker-Reason:')) return null;
  return /^KV-Operation:\s*DEL\s*$/m.test(headers) ? 'DEL' : 'PURGE';
}
