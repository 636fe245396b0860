/**
 * Deletes records of keys that this process released, once the rule in `expendableAt` allows it: exactly that message,
 * so that a newer one is never touched, and nothing is left in its place. Later commands do it by the way, a few at a
 * time, and nobody waits for it. What a crashed process leaves goes by the bucket's max_age.
 */
import { expendableAt, type State } from '../../protocol/index.js';
import { RecentMap } from '../compare-and-swap/recent-map.js';
import type { StreamConfig } from './connection.js';

/** A key in the queue. It stays there while the key is used, so that it is there once however often that is. */
interface Left {
  readonly kvKey: string;
  /** Null while somebody holds it or waits for it. */
  sequence: number | null;
  at: number;
  queuedFor: number;
}

/** More than so many are left to the bucket's max_age. */
const QUEUED_MAX = 50_000;
/** At most so many are deleted at once, and by one batch of commands. */
const AT_ONCE_MAX = 16;
const STEP_MAX = 4;
/** How many keys one batch looks at. */
const LOOKS_MAX = 16;

export interface CleanupParts {
  /** Whether this bucket is ours to clean. */
  readonly enabled: boolean;
  /** Null while nothing may be deleted. */
  config(): StreamConfig | null;
  ask(call: 'MSG.DELETE' | 'PURGE', question: object): Promise<unknown>;
  subjectOf(kvKey: string): string;
}

export class Cleanup {
  readonly #parts: CleanupParts;
  readonly #left = new Map<string, Left>();
  /** From `#head` on. */
  #queue: Left[] = [];
  #head = 0;
  /** The sequences deleted last. */
  readonly #gone = new RecentMap<number, true>(QUEUED_MAX);
  #underWay = 0;
  #trouble: unknown;

  constructor(parts: CleanupParts) {
    this.#parts = parts;
  }

  /** What went wrong last without anybody being told. */
  get trouble(): unknown {
    return this.#trouble;
  }

  wrote(kvKey: string, sequence: number, next: State): void {
    if (!this.#parts.enabled) return;
    const known = this.#left.get(kvKey);
    const isFree = next.holders.length === 0 && next.rests.length === 0 && next.waiters.length === 0;
    if (known) {
      known.sequence = isFree ? sequence : null;
      if (isFree) known.at = expendableAt(next);
      return;
    }
    if (!isFree || this.#left.size >= QUEUED_MAX) return;
    const at = expendableAt(next);
    const left = { kvKey, sequence, at, queuedFor: at };
    this.#left.set(kvKey, left);
    this.#queue.push(left);
  }

  /** Whether this process deleted the message: its subject is empty then, unless somebody wrote there since. */
  isGone(sequence: number): boolean {
    return this.#gone.get(sequence) === true;
  }

  step(earliest: number): void {
    const config = this.#parts.config();
    if (config === null) return;
    let steps = 0;
    for (let looks = 0; looks < LOOKS_MAX && steps < STEP_MAX && this.#underWay < AT_ONCE_MAX; looks++) {
      const left = this.#queue[this.#head];
      if (!left || left.queuedFor > earliest) return;
      this.#shift();
      if (left.sequence !== null && left.at > earliest) {
        // Used again since it was queued.
        left.queuedFor = left.at;
        this.#queue.push(left);
        continue;
      }
      this.#left.delete(left.kvKey);
      if (left.sequence === null) continue;
      steps += 1;
      void this.#remove(left.kvKey, left.sequence, config);
    }
  }

  #shift(): void {
    this.#head += 1;
    if (this.#head < QUEUED_MAX && this.#head < this.#queue.length) return;
    this.#queue = this.#queue.slice(this.#head);
    this.#head = 0;
  }

  async #remove(kvKey: string, sequence: number, { deny_delete }: StreamConfig): Promise<void> {
    this.#underWay += 1;
    try {
      // Buckets made by other tools refuse deletions, but not a purge up to and with this message.
      if (deny_delete === true) {
        await this.#parts.ask('PURGE', { filter: this.#parts.subjectOf(kvKey), seq: sequence + 1 });
      } else await this.#parts.ask('MSG.DELETE', { seq: sequence, no_erase: true });
      this.#gone.set(sequence, true);
    } catch (error) {
      // It was replaced, or it stays until the bucket's max_age.
      this.#trouble = error;
    } finally {
      this.#underWay -= 1;
    }
  }

  /** The bucket may be another, where the same sequences are other messages. */
  forget(): void {
    this.#left.clear();
    this.#queue = [];
    this.#head = 0;
    this.#gone.clear();
  }
}
