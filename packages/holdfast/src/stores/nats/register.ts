/**
 * Records as messages: one per key. The server stores a message only if the last one of its subject has the expected
 * sequence (0: there is none), so only a process that saw a record replaces it. Reads go to the stream's leader, never by
 * a direct get, which any replica answers, possibly with an old record (F22).
 */
import { systemClock } from '../../clock.js';
import type { Command, State, Wake } from '../../protocol/index.js';
import { RecentMap } from '../compare-and-swap/recent-map.js';
import type { Found, Register, Written } from '../compare-and-swap/register.js';
import type { TimeEstimate } from '../compare-and-swap/time-estimate.js';
import type { Bucket } from './bucket.js';
import type { Cleanup } from './cleanup.js';
import type { StoredMessage } from './connection.js';
import { API, explainedWrite, isRefusal, mayLackBucket } from './errors.js';
import type { Message, Stored } from './layout.js';
import { LATE_MS } from './record.js';
import type { Writes } from './writes.js';

export interface RegisterParts {
  readonly bucket: Bucket;
  readonly time: TimeEstimate;
  readonly cleanup: Cleanup;
  readonly writes: Writes;
  readonly wake: (key: string, wakes: readonly Wake[]) => void;
}

/** A process that was paused may get an answer this late. Other processes may read the record's tokens as later ones then. */
const ANSWER_LATE_MS = LATE_MS / 2;

/** How many names of keys in the bucket are cached: an operation needs its name twice. */
const NAMES_MAX = 10_000;

const ABSENT: Found<number> = { state: null, version: 0, lateMs: 0 };

export class NatsRegister implements Register<number> {
  readonly absent = ABSENT;
  readonly wake: RegisterParts['wake'];
  readonly #parts: RegisterParts;
  readonly #names = new RecentMap<string, string>(NAMES_MAX);

  constructor(parts: RegisterParts) {
    this.#parts = parts;
    this.wake = parts.wake;
  }

  async read(key: string): Promise<Found<number>> {
    const { bucket, time } = this.#parts;
    const request = { last_by_subj: bucket.subjectOf(this.#kvKeyOf(key)) };
    let message: StoredMessage | undefined;
    try {
      ({ message } = await bucket.call('MSG.GET', request));
    } catch (error) {
      if (isRefusal(error, API.noMessage)) return ABSENT;
      if (mayLackBucket(error)) bucket.suspect();
      throw error;
    }
    if (!message) throw new Error(`JetStream returned no message for the key "${key}".`);
    const stored = storedOf(message);
    time.noteAtLeast(systemClock.monotonicMs(), stored.storedAt);
    return { ...bucket.layout.decode(stored, key), version: stored.revision };
  }

  async write(key: string, next: State, seen: Found<number>, now: number): Promise<Written<number>> {
    const { bucket, cleanup } = this.#parts;
    // Deleted by this process itself: the key is empty, unless another process came since.
    const base = cleanup.isDeleted(seen.version) ? { ...seen, version: 0 } : seen;
    const message = bucket.layout.encode(next, base, now);
    if (message === null) return await this.#confirm(key, seen);
    try {
      if (base.version > 0 && !bucket.isSame() && !(await bucket.confirm())) {
        return { kind: 'changed', found: null };
      }
      return await this.#store(key, message, base.version, next);
    } catch (error) {
      if (isRefusal(error, API.wrongLastSequence, API.wrongLastSequenceUnnamed)) {
        return { kind: 'changed', found: await this.#readAfter(base.version, key) };
      }
      if (mayLackBucket(error)) bucket.suspect();
      throw explainedWrite(error, key);
    }
  }

  /** The current record. A deposed leader that does not know its successor yet returns an old one. */
  async #readAfter(version: number, key: string): Promise<Found<number>> {
    const found = await this.read(key);
    if (found.version === 0 || found.version >= version) return found;
    throw new Error(`JetStream returned an older record of "${key}" than it had stored before.`);
  }

  async #store(key: string, message: Message, version: number, next: State): Promise<Written<number>> {
    const { bucket, writes, cleanup } = this.#parts;
    const { payload, operation, lagMs = 0 } = message;
    const kvKey = this.#kvKeyOf(key);
    let headers = `Nats-Expected-Last-Subject-Sequence: ${version}\r\n`;
    if (operation !== null) headers += `KV-Operation: ${operation}\r\n`;
    if (version > 0 && bucket.comparesTooEarly) headers += `Nats-Msg-Id: ${version}:${kvKey}\r\n`;
    const sentMs = systemClock.monotonicMs();
    const { seq, duplicate } = await writes.store(bucket.subjectOf(kvKey), payload, headers);
    if (duplicate === true) return { kind: 'changed', found: null };
    if (seq === undefined) throw new Error(`JetStream stored the key "${key}" without naming its sequence.`);
    cleanup.onWritten(kvKey, seq, next);
    // The server's timestamp is from before the answer.
    const tookMs = Math.ceil(systemClock.monotonicMs() - sentMs);
    if (tookMs >= ANSWER_LATE_MS) throw new Error(`JetStream answered too late: after ${tookMs} ms.`);
    return { kind: 'written', version: seq, lateMs: Math.max(tookMs, lagMs) };
  }

  #kvKeyOf(key: string): string {
    const known = this.#names.get(key);
    if (known !== undefined) return known;
    const name = this.#parts.bucket.layout.kvKeyOf(key);
    this.#names.set(key, name);
    return name;
  }

  /** Writes nothing, and confirms that the record seen is still there. */
  async #confirm(key: string, seen: Found<number>): Promise<Written<number>> {
    const found = await this.read(key);
    if (found.version !== seen.version || found.state === null) return { kind: 'changed', found };
    return { kind: 'written', version: found.version, lateMs: found.lateMs, state: found.state };
  }

  check(command: Command): void {
    const { bucket, time } = this.#parts;
    bucket.layout.check?.(command);
    this.#kvKeyOf(command.key);
    bucket.checkTtl(
      storedForMs(command, () => time.reading()?.earliest ?? 0),
      command.key,
    );
  }
}

/** How long the command's result has to be stored. */
function storedForMs(command: Command, now: () => number): number {
  switch (command.kind) {
    case 'claim':
      return command.ttlMs;
    case 'renew':
      return command.added ? command.added.expiresAt + command.added.ms - now() : command.ttlMs;
    // A release is never refused: the lock would be free when its ttl is over, long before its cool-down or the record is.
    case 'release':
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

/** Newer servers mark messages that they deleted by age with a header of their own. */
function operationOf(headers: string): Stored['operation'] {
  if (!headers.includes('KV-Operation:') && !headers.includes('Nats-Marker-Reason:')) return null;
  return /^KV-Operation:\s*DEL\s*$/m.test(headers) ? 'DEL' : 'PURGE';
}
