/**
 * One time from the clocks of several servers, which may be hours apart. The time is that of one server's clock, the
 * reference. The other clocks count by their offset from it. A process that has replies of both servers measures the
 * offset, and stores it for all processes. A clock without a stored offset does not count.
 *
 * An offset is an interval, which widens with its age, because clocks drift. Every process then has an interval that
 * certainly contains the time, with the replies of any servers, as long as clocks run. A reply that contradicts the time
 * makes it unknown (one server's clock was set, or this machine stood still): `settle` finds it again, from the replies of
 * all servers.
 */
import { type Clock, systemClock } from '../../clock.js';
import type { Reading } from './register.js';
import { CLOCK_DRIFT_SHARE, TimeEstimate } from './time-estimate.js';

interface Span {
  readonly low: number;
  readonly high: number;
}

/** A server's clock minus the reference was between these two, in milliseconds. */
export interface ClockOffset extends Span {
  /** When, in the reference's time. Null: this clock is the reference, and its offset stays the same. */
  readonly measuredAtMs: number | null;
}

export interface Measured {
  readonly offsets: ReadonlyMap<string, ClockOffset>;
  /** One of them is not inside its stored interval, which must not be used any more. */
  readonly contradicts: boolean;
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
/** An offset older than this is stored again once it is known better than that. */
const OLD_MS = 120_000;
/** Without replies of the reference all offsets become wide. Past this width, another clock becomes the reference. */
const UNCERTAIN_MS = 4_000;

/** An estimate of the time of each of several servers. */
export class ServerClocks {
  readonly #allowanceMs: number;
  readonly #clock: Clock;
  readonly #own = new Map<string, TimeEstimate>();
  #offsets = new Map<string, ClockOffset>();
  /** Servers whose stored offsets are wrong, because the clocks were set. */
  #wrong = new Set<string>();
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
   * Finds the time from one reply per server. If clocks contradict each other, more than half of them have to agree; the
   * offsets of the others are measured again. False if there is no such majority.
   */
  settle(stored: ReadonlyMap<string, ClockOffset>, replies: readonly ClockReply[]): boolean {
    const spans = replies.flatMap((reply) => {
      const offset = stored.get(reply.server);
      return offset ? [{ reply, offset, ...spanOf(reply, offset) }] : [];
    });
    const agreeing = spans
      .map(({ low: at }) =>
        spans.filter(({ low, high }) => low - this.#allowanceMs <= at && at <= high + this.#allowanceMs),
      )
      .reduce((best, group) => (group.length > best.length ? group : best), []);
    if (agreeing.length * 2 <= spans.length) return false;
    const time = new TimeEstimate(this.#allowanceMs, this.#clock);
    for (const { reply, offset } of agreeing) addTo(time, reply, offset);
    this.#offsets = new Map(stored);
    for (const span of spans) if (!agreeing.includes(span)) this.#offsets.delete(span.reply.server);
    this.#wrong = new Set([...stored.keys()].filter((server) => !this.#offsets.has(server)));
    this.#time = time;
    for (const reply of replies) this.note(reply);
    return true;
  }

  /** Takes over the stored offsets, which another process may have measured better, without those known to be wrong. */
  refresh(stored: ReadonlyMap<string, ClockOffset>): void {
    this.#offsets = new Map([...stored].filter(([server]) => !this.#wrong.has(server)));
  }

  /**
   * Offsets to store: of servers that have none, or whose measurement has become much better, or (`again`) that are old.
   * Ask for old ones only right after `refresh`, so that not every process stores them.
   */
  measured(again = false): Measured {
    const offsets = new Map<string, ClockOffset>();
    let contradicts = false;
    for (const [server] of this.#own) {
      const stored = this.#offsets.get(server);
      const found = this.#measure(server);
      if (!found || stored?.measuredAtMs === null) continue;
      if (!stored) contradicts ||= this.#wrong.has(server);
      else {
        const old = widened(stored, found.measuredAtMs);
        const isInside = old.low - 1 <= found.low && found.high <= old.high + 1;
        const isOld = again && found.measuredAtMs - stored.measuredAtMs > OLD_MS;
        const isBetter = widthOf(old) > WIDE_MS && widthOf(found) < widthOf(old) / 2;
        if (isInside && !isBetter && !(isOld && widthOf(found) < widthOf(old))) continue;
        contradicts ||= !isInside;
      }
      offsets.set(server, found);
    }
    return { offsets, contradicts };
  }

  /** The offsets are stored: these clocks count from now on. */
  believe(offsets: ReadonlyMap<string, ClockOffset>): void {
    for (const [server, offset] of offsets) {
      this.#offsets.set(server, offset);
      this.#wrong.delete(server);
    }
  }

  /**
   * The next reference, from servers that replied just now: the present one was silent for so long that the others became
   * uncertain. By its offset the time is the earliest that it may be, so that stored leases end later, and never earlier.
   */
  nextReference(heard: readonly string[]): { readonly server: string; readonly offset: ClockOffset } | null {
    let next: (Span & { readonly server: string }) | null = null;
    for (const server of heard) {
      if (this.#offsets.get(server)?.measuredAtMs === null) return null;
      const found = this.#offsets.has(server) ? this.#measure(server) : null;
      if (found && (!next || widthOf(found) < widthOf(next))) next = { ...found, server };
    }
    if (!next || widthOf(next) <= UNCERTAIN_MS) return null;
    return { server: next.server, offset: { low: next.high, high: next.high, measuredAtMs: null } };
  }

  /** The measured and the stored interval combined: their intersection, or all of both if they contradict each other. */
  #measure(server: string): (Span & { readonly measuredAtMs: number }) | null {
    const time = this.reading();
    const clock = this.#own.get(server)?.reading();
    if (!time || !clock) return null;
    const measuredAtMs = time.earliest;
    const now = { low: clock.earliest - time.latest, high: clock.latest - time.earliest };
    const stored = this.#offsets.get(server);
    if (!stored) return { ...now, measuredAtMs };
    const old = widened(stored, measuredAtMs);
    const isPossible = now.low <= old.high && old.low <= now.high;
    const [inner, outer] = isPossible ? [Math.max, Math.min] : [Math.min, Math.max];
    return {
      low: Math.floor(inner(now.low, old.low)),
      high: Math.ceil(outer(now.high, old.high)),
      measuredAtMs,
    };
  }
}

const widthOf = ({ low, high }: Span): number => high - low;

/** The offset at a time of the reference. */
function widened({ low, high, measuredAtMs }: ClockOffset, now: number): Span {
  const driftMs = measuredAtMs === null ? 0 : Math.abs(now - measuredAtMs) * CLOCK_DRIFT_SHARE;
  return { low: low - driftMs, high: high + driftMs };
}

/** By this reply, the time was between these two. */
function timeBy({ from, until }: ClockReply, offset: ClockOffset): Span {
  const { low, high } = widened(offset, until - offset.low);
  return { low: from - high, high: until - low };
}

/** By this reply, the time minus the monotonic clock is between these two. */
function spanOf(reply: ClockReply, offset: ClockOffset): Span {
  const { low, high } = timeBy(reply, offset);
  return { low: low - reply.receivedMs, high: high - reply.sentMs };
}

/** False if the reply contradicts the time. */
function addTo(time: TimeEstimate, reply: ClockReply, offset: ClockOffset): boolean {
  const { jumps } = time;
  const { low, high } = timeBy(reply, offset);
  time.note(reply.sentMs, reply.receivedMs, low, high);
  return time.jumps === jumps;
}
