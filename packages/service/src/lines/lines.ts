/** Acquires for clients: at once where nothing is waited for, through the line of the key otherwise. */
import { HoldfastError, UnsupportedError } from 'holdfast';
import { monotonicMs } from '../clock.js';
import type { ServiceEvents } from '../service-events.js';
import { remainingOf } from './answers.js';
import type { Desk } from './desk.js';
import { Ear } from './ear.js';
import { newHold } from './holds.js';
import { Line, NOBODY, type WaitersHere } from './line.js';
import { claimOf, type Outcome, type Wanted } from './wanted.js';

export class Lines {
  readonly #desk: Desk;
  readonly #events: ServiceEvents;
  readonly #waitersMax: number;
  readonly #lines = new Map<string, Line>();
  readonly #ear: Ear;
  #waiting = 0;
  #closed = false;

  constructor(desk: Desk, events: ServiceEvents, waitersMax: number) {
    this.#desk = desk;
    this.#events = events;
    this.#waitersMax = waitersMax;
    this.#ear = new Ear(desk.store, {
      onTurn: (key) => this.#lines.get(key)?.hint(),
      onAll: () => {
        for (const line of [...this.#lines.values()]) line.hint();
      },
    });
  }

  /** How many requests wait here. */
  get waiting(): number {
    return this.#waiting;
  }

  waitersHere(key: string): WaitersHere {
    return this.#lines.get(key)?.waiters() ?? NOBODY;
  }

  /** `gone` aborts when the client went away: then nothing of it stays. */
  async acquire(wanted: Wanted, gone?: AbortSignal): Promise<Outcome> {
    const { key, waitMs, hold } = wanted;
    const sinceMs = monotonicMs();
    let outcome: Outcome;
    if (waitMs === 0) {
      outcome = await this.#ask(wanted);
      if (outcome.kind === 'busy') this.#events.emit('contended', { key });
    } else {
      // One that holds already gets its grant again, however long the line is.
      const again = hold !== null && this.#lines.has(key) ? await this.#ask(wanted) : null;
      if (again && again.kind !== 'busy') outcome = again;
      else outcome = await this.#wait(wanted, gone);
    }
    outcome = this.#unlessOver(wanted, outcome);
    this.#tell(wanted, outcome, monotonicMs() - sinceMs);
    return outcome;
  }

  /** Whoever waits is told that the service closes. */
  async close(withinMs: number): Promise<void> {
    this.#closed = true;
    for (const line of [...this.#lines.values()]) line.close();
    await this.#ear.close(withinMs);
  }

  async #wait(wanted: Wanted, gone: AbortSignal | undefined): Promise<Outcome> {
    if (this.#closed) return { kind: 'closing' };
    if (this.#waiting >= this.#waitersMax) return { kind: 'full' };
    this.#waiting += 1;
    try {
      return await this.#lineOf(wanted.key).enter(wanted, gone);
    } finally {
      this.#waiting -= 1;
    }
  }

  #lineOf(key: string): Line {
    const known = this.#lines.get(key);
    if (known) return known;
    const line: Line = new Line({
      desk: this.#desk,
      ear: this.#ear,
      touched: () => this.#events.emit('touched', { key }),
      contended: () => this.#events.emit('contended', { key }),
      emptied: () => {
        if (this.#lines.get(key) === line) this.#lines.delete(key);
      },
    });
    this.#lines.set(key, line);
    return line;
  }

  async #ask(wanted: Wanted): Promise<Outcome> {
    const { key, ttlMs, minHoldMs } = wanted;
    const hold = wanted.hold ?? newHold(minHoldMs);
    const sentMs = monotonicMs();
    try {
      const reply = await this.#desk.ask(claimOf(wanted, hold, false, null));
      if (reply.kind === 'granted') return { kind: 'granted', hold, reply, sentMs };
      return reply.kind === 'busy' ? { kind: 'busy', reply } : { kind: 'ended' };
    } catch (error) {
      if (error instanceof UnsupportedError) return { kind: 'refused', error };
      if (!wanted.hold) this.#desk.withdraw(key, hold, ttlMs);
      return { kind: 'unknown', cause: error instanceof HoldfastError ? error.cause : error };
    }
  }

  /** P15: a grant that is heard of when it has expired, as the store or this process stood still, is nobody's. */
  #unlessOver({ key, hold, ttlMs }: Wanted, outcome: Outcome): Outcome {
    if (outcome.kind !== 'granted') return outcome;
    const { reply, sentMs } = outcome;
    if (remainingOf(reply.expiresAt, reply.now, sentMs) > 0) return outcome;
    if (!hold) this.#desk.withdraw(key, outcome.hold, ttlMs);
    return { kind: 'ended' };
  }

  #tell({ key }: Wanted, { kind }: Outcome, waitedMs: number): void {
    if (kind === 'granted') {
      this.#events.emit('acquired', { key, waitedMs });
      this.#events.emit('touched', { key });
    } else if (kind === 'busy') this.#events.emit('refused', { key, waitedMs });
  }
}
