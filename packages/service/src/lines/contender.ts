/**
 * One who stands in front and asks the store: claims, and claims again when hinted, when something before it may be
 * over, or by the safety poll. What it asks for is always its waiter's; the hold is the waiter's own, or made here.
 */
import type { UnsupportedError } from 'holdfast';
import { type Busy, type HoldId, POLL_MS, POLL_MS_MAX, type Reply } from 'holdfast/protocol';
import { after, type Cancel, random } from '../clock.js';
import type { Desk } from './desk.js';
import type { Ear } from './ear.js';
import { newHold } from './holds.js';
import type { Speaker, Talk } from './talk.js';
import type { Waiter } from './waiter.js';
import { claimOf } from './wanted.js';

/** Those further back ask a little later: the first in line should find the key free. */
const STAGGER_MS = 10;
/** So many in front ask as often as the store can prove a death: whoever is first now may not know it yet. */
const VIGIL_PLACES = 8;
/** Without hints: full jitter between these, the upper bound doubling. */
const BACKOFF_MS_MIN = 50;
const BACKOFF_MS_MAX = 500;
/** Kept out of a full line: a random pause between this and twice as long. The lock goes to the line, so hurry gains nothing. */
const OUTSIDE_MS = 500;
const OUTSIDE_UNCALLED_MS = 1_500;

/** What a contender tells its line. */
export interface Judge {
  granted(waiter: Waiter, hold: HoldId, reply: Extract<Reply, { kind: 'granted' }>, sentMs: number): void;
  busy(waiter: Waiter, reply: Busy): void;
  unknown(waiter: Waiter, cause: unknown): void;
  ended(waiter: Waiter): void;
  refused(waiter: Waiter, error: UnsupportedError): void;
}

export class Contender implements Speaker {
  waiter: Waiter;
  /** Whether the store's own line shows it. */
  inStore = false;
  readonly #desk: Desk;
  readonly #ear: Ear;
  readonly #judge: Judge;
  #hold: HoldId;
  #talk: Talk | null = null;
  #cancel: Cancel | null = null;
  /** The store may still have something of it: a place in line, or an attempt that nobody answered. */
  #leavesTraces = false;
  #hinted = false;
  #backoffs = 0;
  #withdrawals = 0;

  constructor(waiter: Waiter, desk: Desk, ear: Ear, judge: Judge) {
    this.waiter = waiter;
    this.#desk = desk;
    this.#ear = ear;
    this.#judge = judge;
    this.#hold = waiter.wanted.hold ?? newHold(waiter.wanted.minHoldMs);
    this.#claim();
  }

  /** A claim is on its way: what it comes to is not known yet. */
  get asking(): boolean {
    return this.#talk?.open ?? false;
  }

  /** Attempts that were given up: the store may apply them yet. */
  get inDoubt(): boolean {
    return (this.#talk?.unanswered ?? 0) > 0;
  }

  /** A hint that arrives while a claim is in flight is remembered: the claim may have been decided before it. */
  hint(): void {
    if (this.asking) this.#hinted = true;
    else this.#claim();
  }

  /** Stops, and takes back what the store may still do, where the hold is ours to take back. */
  retire(): void {
    const isOpen = this.asking;
    this.#talk?.stop();
    this.#cancel?.();
    const { key, hold, ttlMs } = this.waiter.wanted;
    if (hold === null && (isOpen || this.#leavesTraces)) this.#desk.withdraw(key, this.#hold, ttlMs);
  }

  onReply(reply: Reply, sentMs: number): void {
    const { waiter } = this;
    this.#leavesTraces ||= this.inDoubt;
    if (reply.kind === 'granted') this.#judge.granted(waiter, this.#hold, reply, sentMs);
    else if (reply.kind === 'busy') this.#onBusy(reply);
    else this.#onWithdrawn();
  }

  onUnknown(cause: unknown): void {
    this.#leavesTraces = true;
    this.#judge.unknown(this.waiter, cause);
  }

  onRefused(error: UnsupportedError): void {
    this.#judge.refused(this.waiter, error);
  }

  #claim(): void {
    this.#cancel?.();
    this.#cancel = null;
    this.#hinted = false;
    this.#ear.listen();
    const { wanted } = this.waiter;
    const queue = wanted.queue && this.#desk.store.traits.queue;
    const command = claimOf(wanted, this.#hold, queue, queue ? this.#ear.inbox : null);
    this.#talk = this.#desk.say(command, wanted.ttlMs, this);
  }

  #onBusy(reply: Busy): void {
    this.#withdrawals = 0;
    this.inStore = reply.position !== null;
    this.#leavesTraces ||= this.inStore;
    this.#judge.busy(this.waiter, reply);
    // The judge may have ended it.
    if (this.waiter.contender !== this) return;
    if (this.#hinted) this.#claim();
    else this.#cancel = after(this.#nextMs(reply), () => this.#claim());
  }

  /** Evicted, or not heard from for too long: on under a new hold, where it is ours. */
  #onWithdrawn(): void {
    const { hold, minHoldMs } = this.waiter.wanted;
    if (hold !== null) {
      this.#judge.ended(this.waiter);
      return;
    }
    this.inStore = false;
    this.#leavesTraces = false;
    this.#hold = newHold(minHoldMs);
    this.#withdrawals += 1;
    if (this.#withdrawals === 1) this.#claim();
    else this.#cancel = after(BACKOFF_MS_MIN, () => this.#claim());
  }

  #nextMs({ position, freeInMs }: Busy): number {
    const { queue, vigilMs } = this.#desk.store.traits;
    if (position === null && queue && this.waiter.wanted.queue)
      return (this.#ear.callsWaiters ? OUTSIDE_MS : OUTSIDE_UNCALLED_MS) * (1 + random());
    const vigil = vigilMs !== null && (position ?? 0) < VIGIL_PLACES ? vigilMs : Number.POSITIVE_INFINITY;
    if (position !== null && this.#ear.callsWaiters) {
      const pollMs = Math.min(POLL_MS * (position + 1), POLL_MS_MAX);
      return Math.min(pollMs, vigil, freeInMs + 1 + position * STAGGER_MS);
    }
    this.#backoffs += 1;
    const mostMs = Math.min(BACKOFF_MS_MIN * 2 ** this.#backoffs, BACKOFF_MS_MAX);
    const pauseMs = BACKOFF_MS_MIN + random() * (mostMs - BACKOFF_MS_MIN);
    return Math.min(pauseMs, vigil, freeInMs + 1 + random() * STAGGER_MS);
  }
}
