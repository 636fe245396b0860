/**
 * Holds of requests to this service, by hold and by key: those that are held, and ended ones about which more may become
 * known. The names contain hold ids, which are secrets and never leave this process.
 */
import type { HoldId } from 'holdfast/protocol';
import { forgetOldest } from '../forget-oldest.js';
import type { KnownHold, PastHold } from './past-holds.js';

export interface TrackedHold {
  readonly name: string;
  readonly hold: KnownHold;
  /** Null while it is held. */
  past: PastHold | null;
}

const NONE: readonly TrackedHold[] = [];

export class TrackedHolds {
  readonly #max: number;
  readonly #byName = new Map<string, TrackedHold>();
  readonly #byKey = new Map<string, Set<TrackedHold>>();

  /** Beyond `max`, the oldest is forgotten. */
  constructor(max: number) {
    this.#max = max;
  }

  get(name: string): TrackedHold | undefined {
    return this.#byName.get(name);
  }

  add(name: string, hold: KnownHold): void {
    const before = this.#byName.get(name);
    if (before) this.delete(before);
    const tracked = { name, hold, past: null };
    this.#byName.set(name, tracked);
    const own = this.#byKey.get(hold.key);
    if (own) own.add(tracked);
    else this.#byKey.set(hold.key, new Set([tracked]));
    forgetOldest(this.#byName, this.#max, this.#forget);
  }

  delete(tracked: TrackedHold): void {
    const { name, hold } = tracked;
    this.#byName.delete(name);
    const own = this.#byKey.get(hold.key);
    if (own?.delete(tracked) && own.size === 0) this.#byKey.delete(hold.key);
  }

  readonly #forget = (name: string): void => {
    const tracked = this.#byName.get(name);
    if (tracked) this.delete(tracked);
  };

  of(key: string): Iterable<TrackedHold> {
    return this.#byKey.get(key) ?? NONE;
  }

  withToken(key: string, token: number): TrackedHold | undefined {
    for (const tracked of this.of(key)) if (tracked.hold.token === token) return tracked;
    return undefined;
  }

  all(): Iterable<TrackedHold> {
    return this.#byName.values();
  }
}

/** The name of a hold here. */
export function nameOf(key: string, { process, number }: HoldId): string {
  return `${key}\n${process}.${number}`;
}
