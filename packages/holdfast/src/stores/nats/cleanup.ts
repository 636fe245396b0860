/**
 * Deletes records of keys that this process released, once the rule of `expendableAt` allows it: exactly that message,
 * so that a newer one is never touched, and without a deletion marker. Later commands trigger it, a few deletions at a
 * time, and nobody waits for it. Records that a crashed process leaves are deleted by the bucket's max_age.
 */
import { expendableAt, type State } from '../../protocol/index.js';
import { isFree } from '../compare-and-swap/contention.js';
import { RecentMap } from '../compare-and-swap/recent-map.js';
import type { Bucket } from './bucket.js';
import type { StreamConfig } from './connection.js';

/** A key in the queue. It stays there while the key is used, so that each key is queued once. */
interface QueuedKey {
  readonly kvKey: string;
  /** Null while somebody holds it or waits for it. */
  sequence: number | null;
  at: number;
  queuedFor: number;
}

/** Further records are left to the bucket's max_age. */
const QUEUED_MAX = 50_000;
/** Deletions that may be pending, in all and per batch of commands. */
const PENDING_MAX = 16;
const STEP_MAX = 4;
/** Queued keys that one batch examines. */
const EXAMINED_MAX = 16;

export class Cleanup {
  readonly #bucket: Bucket;
  readonly #byKey = new Map<string, QueuedKey>();
  /** From `#head` on. */
  #queue: QueuedKey[] = [];
  #head = 0;
  /** The sequences deleted last. */
  readonly #deleted = new RecentMap<number, true>(QUEUED_MAX);
  #pending = 0;
  /** The last error that no caller was told; undefined for none. */
  error: unknown;

  constructor(bucket: Bucket) {
    this.#bucket = bucket;
  }

  onWritten(kvKey: string, sequence: number, next: State): void {
    if (!this.#bucket.layout.ownsBucket) return;
    const known = this.#byKey.get(kvKey);
    const at = expendableAt(next);
    if (known) {
      known.sequence = isFree(next) ? sequence : null;
      known.at = at;
      return;
    }
    if (!isFree(next) || this.#byKey.size >= QUEUED_MAX) return;
    const queued = { kvKey, sequence, at, queuedFor: at };
    this.#byKey.set(kvKey, queued);
    this.#queue.push(queued);
  }

  /** Whether this process deleted the message: its subject is empty then, unless another process wrote there since. */
  isDeleted(sequence: number): boolean {
    return this.#deleted.get(sequence) === true;
  }

  step(earliest: number): void {
    const { config, comparesTooEarly } = this.#bucket;
    // Such servers would let an update of a deleted record overwrite a new one.
    if (config === null || comparesTooEarly || !this.#bucket.isSame()) return;
    let steps = 0;
    for (
      let examined = 0;
      examined < EXAMINED_MAX && steps < STEP_MAX && this.#pending < PENDING_MAX;
      examined++
    ) {
      const queued = this.#queue[this.#head];
      if (!queued || queued.queuedFor > earliest) return;
      this.#shift();
      if (queued.sequence !== null && queued.at > earliest) {
        // Used again since it was queued.
        queued.queuedFor = queued.at;
        this.#queue.push(queued);
        continue;
      }
      this.#byKey.delete(queued.kvKey);
      if (queued.sequence === null) continue;
      steps += 1;
      void this.#remove(queued.kvKey, queued.sequence, config);
    }
  }

  #shift(): void {
    this.#head += 1;
    if (this.#head < QUEUED_MAX && this.#head < this.#queue.length) return;
    this.#queue = this.#queue.slice(this.#head);
    this.#head = 0;
  }

  async #remove(kvKey: string, sequence: number, { deny_delete }: StreamConfig): Promise<void> {
    this.#pending += 1;
    try {
      // Buckets created by other tools refuse deletions, but not a purge up to and including this message.
      if (deny_delete === true) {
        await this.#bucket.call('PURGE', { filter: this.#bucket.subjectOf(kvKey), seq: sequence + 1 });
      } else await this.#bucket.call('MSG.DELETE', { seq: sequence, no_erase: true });
      this.#deleted.set(sequence, true);
    } catch (error) {
      // Another message replaced it, or it stays until the bucket's max_age.
      this.error = error;
    } finally {
      this.#pending -= 1;
    }
  }

  /** Empties the queue: in another bucket, the same sequences are other messages. */
  forget(): void {
    this.#byKey.clear();
    this.#queue = [];
    this.#head = 0;
    this.#deleted.clear();
  }
}
