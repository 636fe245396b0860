/**
 * Deletes records of keys that this process released, once the rule in `expendableAt` allows it: exactly that message,
 * so that a newer one is never touched, and nothing is left in its place. Later commands do it by the way, a few at a
 * time, and nobody waits for it. What a crashed process leaves goes by the bucket's max_age.
 */
import { expendableAt, type State } from '../../protocol/index.js';
import type { StreamConfig } from './connection.js';

interface Left {
  readonly sequence: number;
  readonly at: number;
}

/** More than so many are left to the bucket's max_age. */
const REMEMBERED_MAX = 50_000;
/** At most so many are deleted at once, and by one batch of commands. */
const AT_ONCE_MAX = 16;
const STEP_MAX = 4;

export interface CleanupParts {
  /** Whether this bucket is ours to clean. */
  readonly enabled: boolean;
  /** Null while the bucket was not looked at. */
  config(): StreamConfig | null;
  ask(call: 'MSG.DELETE' | 'PURGE', question: object): Promise<unknown>;
  subjectOf(kvKey: string): string;
}

export class Cleanup {
  readonly #parts: CleanupParts;
  /** In the order in which they were left, which is the order in which they may go. */
  readonly #left = new Map<string, Left>();
  readonly #gone = new Set<number>();
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
    this.#left.delete(kvKey);
    if (next.holders.length > 0 || next.rests.length > 0 || next.waiters.length > 0) return;
    this.#left.set(kvKey, { sequence, at: expendableAt(next) });
    trim(this.#left);
  }

  /** Whether this process deleted the message: its subject is empty then, unless somebody wrote there since. */
  isGone(sequence: number): boolean {
    return this.#gone.has(sequence);
  }

  step(earliest: number): void {
    const config = this.#parts.config();
    if (config === null) return;
    for (let steps = 0; steps < STEP_MAX && this.#underWay < AT_ONCE_MAX; steps++) {
      const [next] = this.#left;
      if (!next || next[1].at > earliest) return;
      const [kvKey, { sequence }] = next;
      this.#left.delete(kvKey);
      void this.#remove(kvKey, sequence, config);
    }
  }

  async #remove(kvKey: string, sequence: number, { deny_delete }: StreamConfig): Promise<void> {
    this.#underWay += 1;
    try {
      // Buckets made by other tools refuse deletions, but not a purge up to and with this message.
      if (deny_delete === true) {
        await this.#parts.ask('PURGE', { filter: this.#parts.subjectOf(kvKey), seq: sequence + 1 });
      } else await this.#parts.ask('MSG.DELETE', { seq: sequence, no_erase: true });
      this.#gone.add(sequence);
      trim(this.#gone);
    } catch (error) {
      // It was replaced, or it stays until the bucket's max_age.
      this.#trouble = error;
    } finally {
      this.#underWay -= 1;
    }
  }

  close(): void {
    this.#left.clear();
    this.#gone.clear();
  }
}

function trim(entries: Map<unknown, unknown> | Set<unknown>): void {
  if (entries.size <= REMEMBERED_MAX) return;
  for (const oldest of entries.keys()) {
    entries.delete(oldest);
    return;
  }
}
