/**
 * Holds of requests to this service, by hold and by key: held ones, and ended ones of which more may become known. The names
 * contain hold ids, which are secrets: they leave this process in no form.
 */
import type { HoldId } from 'holdfast/protocol';
import type { KnownHold, PastHold } from './past-holds.js';

export interface TrackedHold {
  readonly name: string;
  readonly hold: KnownHold;
  /** Null while it is held. */
  past: PastHold | null;
}

export class TrackedHolds {
  readonly #max: number;
  readonly #byName = new Map<string, TrackedHold>();
  readonly #byKey = new Map<string, Set<TrackedHold>>();

  /** Beyond `max`, the oldest is forgotten. */
  constructor(max: number) {
    this.#max = max;
  }

  get(key: string, hold: HoldId): TrackedHold | undefined {
    return this.#byName.get(nameOf(key, hold));
  }

  add(hold: KnownHold, id: HoldId): void {
    const name = nameOf(hold.key, id);
    const before = this.#byName.get(name);
    if (before) this.delete(before);
    const tracked = { name, hold, past: null };
    this.#byName.set(name, tracked);
    this.#byKey.set(hold.key, (this.#byKey.get(hold.key) ?? new Set()).add(tracked));
    if (this.#byName.size <= this.#max) return;
    for (const oldest of this.#byName.values()) {
      this.delete(oldest);
      return;
    }
  }

  delete(tracked: TrackedHold): void {
    const { name, hold } = tracked;
    this.#byName.delete(name);
    const own = this.#byKey.get(hold.key);
    if (own?.delete(tracked) && own.size === 0) this.#byKey.delete(hold.key);
  }

  of(key: string): readonly TrackedHold[] {
    return [...(this.#byKey.get(key) ?? [])];
  }

  withToken(key: string, token: number): TrackedHold | undefined {
    return this.of(key).find(({ hold }) => hold.token === token);
  }

  all(): Iterable<TrackedHold> {
    return this.#byName.values();
  }
}

function nameOf(key: string, { process, number }: HoldId): string {
  return `${key}\n${process}.${number}`;
}
