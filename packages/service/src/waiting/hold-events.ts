/**
 * Events of single holds, each emitted once. A hold is known after a grant or a renewal through this process. A refused
 * renewal of an unknown hold is no loss, and a claim that the library sends again belongs to the same acquire.
 */
import type { Claim, Reply } from 'holdfast/protocol';
import { monotonicMs } from '../clock.js';
import { forgetOldest } from '../forget-oldest.js';
import type { ServiceEvents } from '../service-events.js';
import { holdText } from './holds.js';

interface Known {
  readonly isHeld: boolean;
  /** The time of the first claim. */
  readonly sinceMs: number;
}

/** The oldest are forgotten first, and then only the count of losses is too low. */
const KNOWN_MAX = 100_000;

export class HoldEvents {
  readonly #events: ServiceEvents;
  readonly #known = new Map<string, Known>();

  constructor(events: ServiceEvents) {
    this.#events = events;
  }

  /** The hold was granted or renewed. */
  held(key: string, hold: string): void {
    this.#set(nameOf(key, hold), { isHeld: true, sinceMs: 0 });
  }

  /** A renewal found that the hold is not held. */
  lost(key: string, hold: string): void {
    if (this.#take(key, hold)?.isHeld) this.#events.emit('lost', { key });
  }

  released(key: string, hold: string, held: boolean): void {
    this.#take(key, hold);
    this.#events.emit('released', { key, held });
  }

  /** The library's own release, which also takes back claims that were never granted. */
  withdrawn(key: string, hold: string, held: boolean): void {
    if (this.#take(key, hold)?.isHeld || held) this.#events.emit('released', { key, held });
  }

  /** A claim of the library, sent at `sentMs`: it repeats claims while it waits. */
  claimed({ key, hold, queue }: Claim, reply: Reply, sentMs: number): void {
    const { kind } = reply;
    const name = nameOf(key, holdText(hold));
    const known = this.#known.get(name);
    const waitedMs = monotonicMs() - (known?.sinceMs ?? sentMs);
    if (reply.kind === 'granted' && !known?.isHeld) {
      this.#set(name, { isHeld: true, sinceMs: sentMs });
      this.#events.emit('acquired', { key, waitedMs, token: reply.token });
    }
    if (kind !== 'busy' || known) return;
    this.#set(name, { isHeld: false, sinceMs: sentMs });
    this.#events.emit('contended', { key });
    if (!queue) this.#events.emit('refused', { key, waitedMs });
  }

  #set(name: string, known: Known): void {
    this.#known.set(name, known);
    forgetOldest(this.#known, KNOWN_MAX, (oldest) => this.#known.delete(oldest));
  }

  #take(key: string, hold: string): Known | undefined {
    const name = nameOf(key, hold);
    const known = this.#known.get(name);
    this.#known.delete(name);
    return known;
  }
}

function nameOf(key: string, hold: string): string {
  return `${key}\n${hold}`;
}
