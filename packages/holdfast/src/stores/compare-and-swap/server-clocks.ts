/**
 * One time from the clocks of several servers, which may be hours apart. The time is that of one server's clock, the
 * reference. The other clocks count by their offset from it, which is measured once by a process that hears both, and
 * stored where all processes read it. A clock without a stored offset is not believed.
 *
 * Every process then has an interval that certainly contains the time, whichever servers it hears, as long as clocks run:
 * they may drift apart by `allowanceMs` between two measurements. A reply that contradicts the time makes it unknown (one
 * server's clock was set, or this machine stood still): `settle` finds it again, from the replies of all servers.
 */
import { type Clock, systemClock } from '../../clock.js';
import type { Reading } from './register.js';
import { TimeEstimate } from './time-estimate.js';

/** A server's clock minus the reference is between these two, in milliseconds. */
export interface ClockOffset {
  readonly low: number;
  readonly high: number;
}

/** Somewhere between these two moments of the monotonic clock, the server's clock was between `from` and `until`. */
export interface ClockReply {
  readonly server: string;
  readonly sentMs: number;
  readonly receivedMs: number;
  readonly from: number;
  readonly until: number;
}

/** An offset is measured better when its interval shrinks to half, and was wider than this. */
const WIDE_MS = 100;

export class ServerClocks {
  readonly #allowanceMs: number;
  readonly #clock: Clock;
  readonly #own = new Map<string, TimeEstimate>();
  #offsets = new Map<string, ClockOffset>();
  #time: TimeEstimate | null = null;
  #jumps = 0;

  constructor(allowanceMs: number, clock: Clock = systemClock) {
    this.#allowanceMs = allowanceMs;
    this.#clock = clock;
  }

  get jumps(): number {
    return this.#jumps;
  }

  get offsets(): ReadonlyMap<string, ClockOffset> {
    return this.#offsets;
  }

  reading(): Reading | null {
    return this.#time?.reading() ?? null;
  }

  isFresh(): boolean {
    return this.#time?.isFresh() ?? false;
  }

  note(reply: ClockReply): void {
    const own = this.#own.get(reply.server) ?? new TimeEstimate(undefined, this.#clock);
    this.#own.set(reply.server, own);
    own.note(reply.sentMs, reply.receivedMs, reply.from, reply.until);
    const offset = this.#offsets.get(reply.server);
    if (!this.#time || !offset || addTo(this.#time, reply, offset)) return;
    this.forget();
  }

  /** The time is unknown until `settle`. */
  forget(): void {
    this.#jumps += 1;
    this.#time = null;
    this.#own.clear();
  }

  /**
   * Finds the time from one reply per server. Where clocks contradict each other, more than half of them have to agree;
   * the offsets of the others are measured again. False: no such majority.
   */
  settle(stored: ReadonlyMap<string, ClockOffset>, replies: readonly ClockReply[]): boolean {
    const known = replies.filter(({ server }) => stored.has(server));
    const spans = known.map((reply) => ({ reply, ...spanOf(reply, stored.get(reply.server)) }));
    const agreeing = spans
      .map(({ low: at }) =>
        spans.filter(({ low, high }) => low - this.#allowanceMs <= at && at <= high + this.#allowanceMs),
      )
      .reduce((best, group) => (group.length > best.length ? group : best), []);
    if (agreeing.length * 2 <= known.length) return false;
    const time = new TimeEstimate(this.#allowanceMs, this.#clock);
    for (const { reply } of agreeing) addTo(time, reply, stored.get(reply.server));
    this.#offsets = new Map(stored);
    for (const { server } of known) {
      if (!agreeing.some(({ reply }) => reply.server === server)) this.#offsets.delete(server);
    }
    this.#time = time;
    for (const reply of replies) this.note(reply);
    return true;
  }

  /** Offsets to store: of servers that have none, or whose measurement has become much better. */
  measured(): ReadonlyMap<string, ClockOffset> {
    const found = new Map<string, ClockOffset>();
    const time = this.reading();
    if (!time) return found;
    for (const [server, own] of this.#own) {
      const stored = this.#offsets.get(server);
      const clock = own.reading();
      if (!clock || (stored && widthOf(stored) <= WIDE_MS)) continue;
      const offset = { low: clock.earliest - time.latest, high: clock.latest - time.earliest };
      if (!stored || widthOf(offset) < widthOf(stored) / 2) found.set(server, offset);
    }
    return found;
  }

  /** The offsets are stored: these clocks count from now on. */
  believe(offsets: ReadonlyMap<string, ClockOffset>): void {
    for (const [server, offset] of offsets) this.#offsets.set(server, offset);
  }
}

const widthOf = ({ low, high }: ClockOffset): number => high - low;

/** The time minus the monotonic clock is between these two, by this reply. */
function spanOf(reply: ClockReply, { low, high }: ClockOffset = { low: 0, high: 0 }): ClockOffset {
  return { low: reply.from - high - reply.receivedMs, high: reply.until - low - reply.sentMs };
}

/** False where it contradicts the time. */
function addTo(
  time: TimeEstimate,
  { sentMs, receivedMs, from, until }: ClockReply,
  { low, high }: ClockOffset = { low: 0, high: 0 },
): boolean {
  const { jumps } = time;
  time.note(sentMs, receivedMs, from - high, until - low);
  return time.jumps === jumps;
}
