/** Holds that the service makes for requests without one. */
import type { HoldId } from 'holdfast/protocol';
import { randomBelow, randomId } from '../clock.js';
import { forgetOldest } from '../forget-oldest.js';

/** The `minHold` is part of a hold's text, so that every service process can keep to it. */
const REST = /~([0-9]{1,9})$/;

/** Unguessable, with its own process text: waiters of one process would take each other's place in the store's queue. */
export function newHold(minHoldMs: number): HoldId {
  return { process: withRest(randomId(), minHoldMs), number: 1 };
}

export function withRest(process: string, minHoldMs: number): string {
  return minHoldMs > 0 ? `${process}~${minHoldMs}` : process;
}

/**
 * How far a hold's number may be above that of the hold before it. A client that had the earlier hold, with the same API
 * key or JWT, would have to try 2⁴⁵ numbers for the later one, by requests. A text has room for about 500 holds.
 */
const STEP_MAX = 2 ** 45;
/** The most texts that are remembered. */
const TEXTS_MAX = 10_000;

/**
 * Unguessable holds for acquires that do not wait: those of one principal on one key share a process text, and their
 * numbers rise. The store keeps a mark per process of the holds that have ended on a key, up to 128 of them, and every
 * command reads all marks. With a text for every hold, a lock that is taken often costs Redis and PostgreSQL ten times as
 * much.
 */
export class SharedTexts {
  readonly #last = new Map<string, HoldId>();

  next(principal: string, key: string): HoldId {
    const name = nameOf(principal, key);
    const last = this.#last.get(name);
    const number = (last?.number ?? 0) + 1 + randomBelow(STEP_MAX);
    const hold =
      last && Number.isSafeInteger(number)
        ? { process: last.process, number }
        : { process: randomId(), number: 1 + randomBelow(STEP_MAX) };
    this.#last.set(name, hold);
    forgetOldest(this.#last, TEXTS_MAX, (oldest) => this.#last.delete(oldest));
    return hold;
  }

  /** A hold with a higher number has ended already, so the store grants nothing more under this text. */
  forget(principal: string, key: string): void {
    this.#last.delete(nameOf(principal, key));
  }
}

function nameOf(principal: string, key: string): string {
  return `${principal}\n${key}`;
}

/** The `minHold` of the acquire. */
export function minHoldOf({ process }: HoldId): number {
  return Number(REST.exec(process)?.[1] ?? 0);
}

/** The hold in the form for clients. */
export function holdText({ process, number }: HoldId): string {
  return `${process}.${number}`;
}
