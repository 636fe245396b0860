/**
 * The lease of a user, on a hold, with a signal that aborts when it is lost. It ends once, by release, loss or handoff.
 * The hold itself is a capability and cannot be reached from here.
 */
import type { Duration, Lease, LeaseState, ReleaseOptions } from '../api.js';
import { durationMs, TTL_MS_MAX, TTL_MS_MIN } from '../protocol/durations.js';
import { LeaseLostError } from '../protocol/errors.js';
import type { Metadata } from '../protocol/holder-info.js';
import { checkOptionNames } from '../protocol/option-names.js';
import type { Store } from '../protocol/store.js';
import { readMetadata } from '../protocol/view.js';
import { storeError, unsupportedError } from '../store-client/store-error.js';
import { CHANNELS } from './events.js';
import { handoffText } from './handoff.js';
import type { Hold, HoldUser, Loss } from './hold.js';
import { type LeaseRequest, renewalTtlMs } from './lease-request.js';

/** How long a renewal is awaited before its outcome counts as unknown. */
const RENEW_MS = 2_000;

const NO_CALLBACKS: readonly (() => void)[] = [];

/** The method that `console.log` of Node, Bun and Deno calls. */
const INSPECT: unique symbol = Symbol.for('nodejs.util.inspect.custom');

/** The words for each state in messages. */
const ENDED: Readonly<Record<LeaseState, string>> = {
  held: 'is held',
  lost: 'is lost',
  released: 'was released',
  'handed-off': 'was handed off',
};

export class HeldLease implements Lease, HoldUser {
  readonly token: number;
  readonly #hold: Hold;
  readonly #acquiredAt: number;
  #state: LeaseState = 'held';
  #loss: Loss | null = null;
  #controller: AbortController | null = null;
  /** Called once, by every kind of end. */
  #onEnd: readonly (() => void)[] = NO_CALLBACKS;
  #released: Promise<void> | null = null;

  /** `acquiredAt`: by the store's clock. `maxHoldMs`: how long it may live from now on. */
  constructor(hold: Hold, acquiredAt: number, maxHoldMs = hold.request.maxHoldMs) {
    this.#hold = hold;
    this.#acquiredAt = acquiredAt;
    this.token = hold.nextToken;
    hold.nextToken += 1;
    hold.user = this;
    hold.acquiredAt = acquiredAt;
    if (maxHoldMs !== Number.POSITIVE_INFINITY) hold.limitTo(maxHoldMs);
  }

  /** The request of the lease, hidden from users. */
  static requestOf(lease: HeldLease): LeaseRequest {
    return lease.#hold.request;
  }

  static storeOf(lease: HeldLease): Store {
    return lease.#hold.client.store;
  }

  get key(): string {
    return this.#hold.request.name;
  }

  get owner(): string {
    return this.#hold.request.owner;
  }

  get metadata(): Metadata | undefined {
    return readMetadata(this.#hold.request.metadata);
  }

  get acquiredAt(): Date {
    return new Date(this.#acquiredAt);
  }

  get expiresAt(): Date {
    return new Date(this.#hold.expiresAt);
  }

  /** Made at the first access, because most leases need none. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#state === 'lost') this.#controller.abort(this.#overError());
    }
    return this.#controller.signal;
  }

  get state(): LeaseState {
    return this.#state;
  }

  /** Reads the clocks: after a pause, code runs before timers do (F1). */
  get held(): boolean {
    if (this.#state !== 'held') return false;
    if (this.#hold.remainingMs > 0) return true;
    this.#hold.loseAtEnd();
    return false;
  }

  get remainingMs(): number {
    return this.held ? this.#hold.remainingMs : 0;
  }

  assertHeld(): void {
    if (!this.held) throw this.#overError();
  }

  async renew(ttl?: Duration): Promise<void> {
    const { ttlMs } = this.#hold.request;
    const wantedMs = ttl === undefined ? ttlMs : durationMs(ttl, 'ttl', TTL_MS_MIN, TTL_MS_MAX);
    this.assertHeld();
    if (wantedMs !== ttlMs) this.#hold.setApart();
    await this.#renewed(wantedMs, 'renew');
  }

  release(options?: ReleaseOptions): Promise<void> {
    return options === undefined ? this.#release(this.#hold.request.minHoldMs) : this.#releaseWith(options);
  }

  async #releaseWith(options: ReleaseOptions): Promise<void> {
    const { minHold } = checkOptionNames(options, ['minHold']);
    const { minHoldMs } = this.#hold.request;
    // A longer `minHold` is refused: it counts from the grant, which a handover in this process leaves far behind.
    await this.#release(minHold === undefined ? minHoldMs : durationMs(minHold, 'minHold', 0, minHoldMs));
  }

  /** Releases a lease that no caller got, without the cool-down of its `minHold`. Never throws. */
  static async giveBack(lease: HeldLease): Promise<void> {
    await Promise.allSettled([lease.#release(0)]);
  }

  #release(minHoldMs: number): Promise<void> {
    if (!this.held) return this.#released ?? Promise.resolve();
    this.#end('released');
    const hold = this.#hold;
    const { events } = hold.owner;
    if (events.has(CHANNELS.released)) {
      events.emit('released', hold.request, () => ({ token: this.token, heldMs: this.#heldMs() }));
    }
    this.#released = hold.owner.leave(hold, true, minHoldMs);
    return this.#released;
  }

  /**
   * Ends the lease but not the hold, which continues in another process. A last renewal leaves that process a whole ttl.
   * If the call rejects, the lease stays as it was, except that no other waiter of this process gets the hold.
   */
  async handoff(): Promise<string> {
    const hold = this.#hold;
    const { request, owner } = hold;
    this.assertHeld();
    hold.setApart();
    await this.#renewed(renewalTtlMs(request), 'handoff');
    await this.#detachFromProcess();
    this.assertHeld();
    this.#end('handed-off');
    owner.drop(hold);
    owner.events.emit('handed-off', request, () => ({ token: this.token, heldMs: this.#heldMs() }));
    return handoffText({ id: hold.id, request, token: this.token, acquiredAt: this.#acquiredAt });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await releaseQuietly(this);
  }

  /** `console.log` does not show getters, and minifiers rename the class. */
  [INSPECT](_depth: number, options: object, inspect: (value: object, options: object) => string): string {
    const { key, token, owner, state, acquiredAt, expiresAt, metadata } = this;
    return `Lease ${inspect({ key, token, owner, state, acquiredAt, expiresAt, metadata }, options)}`;
  }

  /** Resolves when the lease is over, by any kind of end. */
  static ended(lease: HeldLease): Promise<void> {
    if (lease.#state !== 'held') return Promise.resolve();
    return new Promise((resolve) => {
      lease.#onEnd = [...lease.#onEnd, resolve];
    });
  }

  /** Takes the lock from a user that did not release it: first the signal aborts, then the hold is released. */
  static revoke(lease: HeldLease, loss: Loss): Promise<void> {
    if (!lease.held) return Promise.resolve();
    lease.noteLoss(loss);
    lease.tellLoss();
    return lease.#hold.owner.leave(lease.#hold, false);
  }

  noteLoss(loss: Loss): void {
    this.#loss = loss;
    this.#end('lost');
  }

  onReleased(released: Promise<void>): void {
    this.#released = Promise.allSettled([released]).then(() => undefined);
  }

  tellLoss(): void {
    const { owner, request } = this.#hold;
    const loss = this.#loss;
    if (loss)
      owner.events.emit('lost', request, () => ({ token: this.token, heldMs: this.#heldMs(), ...loss }));
    this.#controller?.abort(this.#overError());
  }

  #end(state: Exclude<LeaseState, 'held'>): void {
    this.#state = state;
    if (this.#onEnd === NO_CALLBACKS) return;
    for (const onEnd of this.#onEnd) onEnd();
    this.#onEnd = NO_CALLBACKS;
  }

  #renewed(ttlMs: number, operation: string): Promise<void> {
    const hold = this.#hold;
    const { timers, clock } = hold.client;
    return new Promise((resolve, reject) => {
      const timer = timers.call(clock.monotonicMs() + RENEW_MS, () =>
        reject(storeError(operation, this.key, hold.failure)),
      );
      hold.renew(ttlMs, (outcome) => {
        timers.cancel(timer);
        if (outcome === 'renewed') resolve();
        else reject(outcome === 'lost' ? this.#overError() : unsupportedError(this.key, outcome));
      });
    });
  }

  /** If the store would end the hold together with this process, tells it not to. */
  async #detachFromProcess(): Promise<void> {
    const hold = this.#hold;
    const { store } = hold.client;
    if (!store.handOff) return;
    const detach = store.handOff.bind(store, hold.id);
    hold.leaving = true;
    try {
      await hold.client.retryWithin(detach, 'handoff', this.key);
    } finally {
      hold.leaving = false;
      if (!hold.ended) hold.dueWithin(0);
    }
  }

  #overError(): LeaseLostError {
    const loss = this.#loss;
    const because = loss ? `is lost: ${loss.message}` : ENDED[this.#state];
    const message = `The lease on "${this.key}" (token ${this.token}) ${because}. Stop what it protects: others may hold the lock.`;
    return new LeaseLostError(message, { key: this.key, reason: loss?.reason });
  }

  #heldMs(): number {
    return Math.max(0, this.#hold.client.storeNow() - this.#acquiredAt);
  }
}

/** The same lease with some of its members replaced. */
export function leaseWith(lease: Lease, replaced: Partial<Lease>): Lease {
  return new Proxy(lease, {
    get(target, name): unknown {
      if (Object.hasOwn(replaced, name)) return Reflect.get(replaced, name);
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** A failed release changes neither the work's result nor its error (P4): it goes on in the background. */
export async function releaseQuietly(lease: { release(): Promise<void> }): Promise<void> {
  await Promise.allSettled([lease.release()]);
}
