/**
 * The core of one process on one store: the turnstiles, what they share, and everything that has to be said to the
 * store in the background until it is answered.
 */
import type { Clock } from '../clock.js';
import type { Release, Why } from '../protocol/commands.js';
import { ATTEMPT_MS } from '../protocol/constants.js';
import type { HoldfastError } from '../protocol/errors.js';
import type { HoldId } from '../protocol/state.js';
import type { Stop, Store } from '../protocol/store.js';
import { Aborts } from './aborts.js';
import { Agenda } from './agenda.js';
import { Batching } from './batching.js';
import { ClockWatch } from './clock-watch.js';
import { EventLoop } from './event-loop.js';
import { Events } from './events.js';
import { type Awaiting, Farewell, RELEASE_MS } from './farewell.js';
import type { Hold } from './hold.js';
import { answerWithin } from './patience.js';
import type { Request } from './request.js';
import { joinStore, leaveStore } from './store-users.js';
import type { Admission } from './ticket.js';
import type { Turn } from './turn.js';
import { Turnstile } from './turnstile.js';
import type { Moment } from './validity.js';

/** How long to leave a store alone that could not be listened to. */
const LISTEN_AGAIN_MS = 1_000;

export class Core {
  readonly store: Store;
  readonly clock: Clock;
  readonly loop: EventLoop;
  readonly agenda: Agenda;
  readonly batching: Batching;
  readonly events = new Events();
  readonly aborts = new Aborts();
  /** Where hints for this process go. Another random id than `process`: inbox names may be seen. */
  readonly inbox: string | null;
  holdsAlive = 0;
  readonly #process: string;
  readonly #clockWatch = new ClockWatch(this);
  readonly #turnstiles = new Map<string, Turnstile>();
  readonly #farewells = new Set<Farewell>();
  /** How long the store took to answer last; no more than a first attempt is awaited: a pause is no round trip. */
  roundTripMs = 0;
  /** What to add to this process's monotonic clock for the store's time, as far as the last answer tells. */
  #storeAheadMs = 0;
  #holdNumber = 0;
  #listening: Promise<Stop | null> | null = null;
  #listenAgainMs = Number.NEGATIVE_INFINITY;
  #hearing = true;
  #onQuiet: (() => void) | null = null;

  constructor(store: Store, clock: Clock) {
    this.store = store;
    joinStore(store);
    this.clock = clock;
    this.loop = new EventLoop(clock);
    this.agenda = new Agenda(clock);
    this.batching = new Batching(store, this.loop);
    this.inbox = store.listen ? clock.randomId() : null;
    this.#process = clock.randomId();
  }

  acquire(request: Request): Promise<Admission> {
    this.#listen();
    return this.turnstileOf(request.key).enter(request).admission;
  }

  turnstileOf(key: string): Turnstile {
    let turnstile = this.#turnstiles.get(key);
    if (!turnstile) {
      turnstile = new Turnstile(this, key);
      this.#turnstiles.set(key, turnstile);
    }
    return turnstile;
  }

  /** Whether the store keeps waiters in line and calls them, and this process hears it, as far as it knows (F32). */
  callsWaiters(): boolean {
    const { queue, push } = this.store.traits;
    if (!queue || !push) return false;
    this.#listen();
    return this.#listening !== null && this.#hearing;
  }

  holdBegan(): void {
    this.holdsAlive += 1;
    this.#clockWatch.start();
  }

  holdEnded(): void {
    this.holdsAlive -= 1;
  }

  /** Ends the holds that are over by either clock. */
  checkHolds(): void {
    for (const turnstile of [...this.#turnstiles.values()]) {
      for (const hold of turnstile.holds) hold.check();
    }
  }

  newHold(): HoldId {
    this.#holdNumber += 1;
    return { process: this.#process, number: this.#holdNumber };
  }

  noteAnswer(storeNow: number, sent: Moment): void {
    this.roundTripMs = Math.min(this.clock.monotonicMs() - sent.monotonicMs, ATTEMPT_MS);
    this.#storeAheadMs = storeNow - sent.monotonicMs;
  }

  /** The store's time at this moment, as far as this process can tell. For people to read. */
  storeNow(): number {
    return Math.round(this.clock.monotonicMs() + this.#storeAheadMs);
  }

  forget(turnstile: Turnstile): void {
    if (this.#turnstiles.get(turnstile.key) === turnstile) this.#turnstiles.delete(turnstile.key);
  }

  /** Every turn of this process. */
  turns(): Turn[] {
    const turns: Turn[] = [];
    for (const turnstile of this.#turnstiles.values()) {
      for (const { turn } of turnstile.holds) if (turn) turns.push(turn);
    }
    return turns;
  }

  /** Ends all waiting, for this reason. */
  refuseAll(error: HoldfastError): void {
    for (const turnstile of [...this.#turnstiles.values()]) turnstile.refused(error);
  }

  /** Ends a hold at the store. Unanswered, it rejects after a while and goes on in the background. */
  release({ id, request, lifeMs }: Hold): Promise<void> {
    const { key, name, ttlMs, minHoldMs } = request;
    return new Promise((resolve, reject) => {
      this.#sayFarewell({ kind: 'release', key, hold: id, minHoldMs }, ttlMs, lifeMs, {
        name,
        resolve,
        reject,
      });
    });
  }

  /** Takes back a claim whose outcome nobody waits for any more: a late grant is given back, never leaked (F5). */
  withdraw(key: string, hold: HoldId, ttlMs: number, lifeMs = ttlMs): void {
    this.#sayFarewell({ kind: 'release', key, hold, minHoldMs: 0 }, ttlMs, lifeMs, null);
  }

  #sayFarewell(command: Release, ttlMs: number, lifeMs: number, awaiting: Awaiting | null): void {
    this.#farewells.add(new Farewell(this, command, ttlMs, lifeMs, awaiting));
  }

  farewellSaid(farewell: Farewell): void {
    this.#farewells.delete(farewell);
    if (this.#farewells.size === 0) this.#onQuiet?.();
  }

  /** Resolves when every release and withdrawal has been answered, or after a while. */
  async quiet(): Promise<void> {
    if (this.#farewells.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#onQuiet = resolve;
      this.agenda.call(this.clock.monotonicMs() + RELEASE_MS, resolve);
    });
  }

  /** Ends everything, and the store unless others use it. Whoever still awaits something is told that it is unknown. */
  async close(): Promise<void> {
    for (const farewell of this.#farewells) farewell.stop();
    try {
      await answerWithin(this, this.#closeStore(), 'close');
    } finally {
      this.agenda.close();
    }
  }

  async #closeStore(): Promise<void> {
    const stopped = this.#listening?.then((stop) => stop?.());
    // One that hangs or fails does not keep the other from being closed.
    for (const outcome of await Promise.allSettled([stopped, leaveStore(this.store)])) {
      if (outcome.status === 'rejected') throw outcome.reason;
    }
  }

  /** Hints are a help, not a need: a store that cannot be listened to now is asked again later. */
  #listen(): void {
    const { store, inbox } = this;
    if (this.#listening || !store.listen || inbox === null) return;
    if (this.clock.monotonicMs() < this.#listenAgainMs) return;
    this.#listening = store
      .listen(
        inbox,
        (key: string, why: Why) => this.#turnstiles.get(key)?.hint(why),
        (hearing) => this.#hears(hearing),
      )
      .then((stop) => {
        // Whoever stood in line before may have been called already, with nobody there to hear it.
        this.#askAll();
        return stop;
      })
      .catch(() => {
        this.#listening = null;
        this.#listenAgainMs = this.clock.monotonicMs() + LISTEN_AGAIN_MS;
        return null;
      });
  }

  /** Either way everybody asks at once: hints may have been missed, and the pace of asking changes. */
  #hears(hearing: boolean): void {
    if (hearing === this.#hearing) return;
    this.#hearing = hearing;
    this.#askAll();
  }

  #askAll(): void {
    for (const turnstile of [...this.#turnstiles.values()]) turnstile.hint('turn');
  }
}
