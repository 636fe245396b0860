/** A turn on a hold: what stands behind a lease. Over once, by release or by loss, and never back. */
import { LeaseLostError } from '../protocol/errors.js';
import type { Hold } from './hold.js';
import { unansweredError } from './patience.js';
import type { Request } from './request.js';

/** How long somebody awaits a renewal before its outcome counts as unknown. */
const RENEW_MS = 2_000;

/** Why most leases are lost. */
export const OVER = 'its time ran out before a renewal was answered';

export type TurnState = 'held' | 'released' | 'lost';

export class Turn {
  readonly hold: Hold;
  readonly token: number;
  /** By the store's clock. */
  readonly acquiredAt: number;
  state: TurnState = 'held';
  /** Why it was lost, for people to read. */
  lostBecause = '';
  onLost: (() => void) | null = null;
  #released: Promise<void> | null = null;

  constructor(hold: Hold, token: number, acquiredAt: number) {
    this.hold = hold;
    this.token = token;
    this.acquiredAt = acquiredAt;
  }

  /** Only like goes to like: what the first asked for is what every turn on the hold asked for. */
  get request(): Request {
    return this.hold.request;
  }

  /** Reads the clocks: after a pause, code runs before timers do (F1). */
  get held(): boolean {
    if (this.state !== 'held') return false;
    if (this.hold.remainingMs > 0) return true;
    this.hold.lose(OVER);
    return false;
  }

  noteLoss(reason: string): void {
    this.state = 'lost';
    this.lostBecause = reason;
  }

  tellLoss(): void {
    const { events } = this.hold.core;
    const reason = this.lostBecause;
    events.emit('lost', this.request, () => ({ token: this.token, heldMs: this.#heldMs(), reason }));
    this.onLost?.();
  }

  /** Renews now. Rejects when the turn is over, or when the store does not answer for a while. */
  renew(ttlMs: number): Promise<void> {
    const { hold, request } = this;
    const { agenda, clock } = hold.core;
    if (ttlMs !== hold.request.ttlMs && !hold.stretched) {
      hold.stretched = true;
      hold.turnstile.stretched();
    }
    return new Promise((resolve, reject) => {
      const timer = agenda.call(clock.monotonicMs() + RENEW_MS, () =>
        reject(unansweredError('renew', request.name)),
      );
      hold.renewal.demand(ttlMs, (outcome) => {
        agenda.cancel(timer);
        if (outcome === 'renewed') resolve();
        else reject(this.overError());
      });
    });
  }

  overError(details: { readonly result?: unknown } = {}): LeaseLostError {
    const { name } = this.request;
    const because = this.state === 'lost' ? `is lost: ${this.lostBecause}` : 'was released';
    const message = `The lease on "${name}" (token ${this.token}) ${because}. Stop what it protects: others may hold the lock.`;
    return new LeaseLostError(message, { key: name, ...details });
  }

  /** With `handOver` false the hold goes back to the store even when others of this process wait. */
  release(handOver = true): Promise<void> {
    if (!this.held) return this.#released ?? Promise.resolve();
    this.state = 'released';
    const { events } = this.hold.core;
    events.emit('released', this.request, () => ({ token: this.token, heldMs: this.#heldMs() }));
    this.#released = this.hold.turnstile.leave(this.hold, handOver);
    return this.#released;
  }

  #heldMs(): number {
    return Math.max(0, this.hold.core.storeNow() - this.acquiredAt);
  }
}
