/** A turn on a hold: what stands behind a lease. Over once, by release, loss or handoff, and never back. */
import { LeaseLostError } from '../protocol/errors.js';
import type { Hold } from './hold.js';
import { insistWithin, storeError } from './patience.js';
import { askTtlMs, type Request } from './request.js';

/** How long somebody awaits a renewal before its outcome counts as unknown. */
const RENEW_MS = 2_000;

const NOBODY: readonly (() => void)[] = [];

/** Why most leases are lost. */
export const OVER = 'its time ran out before a renewal was answered';

export type TurnState = 'held' | 'released' | 'lost' | 'handed-off';

/** How a lease ended that was not lost. */
const ENDED: Readonly<Record<Exclude<TurnState, 'lost'>, string>> = {
  held: 'is held',
  released: 'was released',
  'handed-off': 'was handed off',
};

export class Turn {
  readonly hold: Hold;
  readonly token: number;
  /** By the store's clock. */
  readonly acquiredAt: number;
  state: TurnState = 'held';
  /** Why it was lost, for people to read. */
  lostBecause = '';
  onLost: (() => void) | null = null;
  /** Called once, however the turn ends. */
  #onOver: readonly (() => void)[] = NOBODY;
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

  /** Resolves when the turn is over, however it ends. */
  over(): Promise<void> {
    if (this.state !== 'held') return Promise.resolve();
    return new Promise((resolve) => {
      this.#onOver = [...this.#onOver, resolve];
    });
  }

  #end(state: Exclude<TurnState, 'held'>): void {
    this.state = state;
    for (const onOver of this.#onOver) onOver();
    this.#onOver = NOBODY;
  }

  noteLoss(reason: string): void {
    this.lostBecause = reason;
    this.#end('lost');
  }

  tellLoss(): void {
    const { events } = this.hold.core;
    const reason = this.lostBecause;
    events.emit('lost', this.request, () => ({ token: this.token, heldMs: this.#heldMs(), reason }));
    this.onLost?.();
  }

  /** Renews now. Rejects when the turn is over, or when the store does not answer for a while. */
  renew(ttlMs: number): Promise<void> {
    if (ttlMs !== this.request.ttlMs) this.hold.setApart();
    return this.#renewed(ttlMs, 'renew');
  }

  #renewed(ttlMs: number, operation: string): Promise<void> {
    const { hold, request } = this;
    const { agenda, clock } = hold.core;
    return new Promise((resolve, reject) => {
      const timer = agenda.call(clock.monotonicMs() + RENEW_MS, () =>
        reject(storeError(operation, request.name, hold.renewal.failure)),
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
    const because = this.state === 'lost' ? `is lost: ${this.lostBecause}` : ENDED[this.state];
    const message = `The lease on "${name}" (token ${this.token}) ${because}. Stop what it protects: others may hold the lock.`;
    return new LeaseLostError(message, { key: name, ...details });
  }

  release(): Promise<void> {
    if (!this.held) return this.#released ?? Promise.resolve();
    this.#end('released');
    const { events } = this.hold.core;
    events.emit('released', this.request, () => ({ token: this.token, heldMs: this.#heldMs() }));
    this.#released = this.hold.turnstile.leave(this.hold, true);
    return this.#released;
  }

  /** Takes the lock from a holder that did not release it: the holder is told first, then the store. */
  revoke(reason: string): Promise<void> {
    if (!this.held) return Promise.resolve();
    this.noteLoss(reason);
    this.tellLoss();
    return this.hold.turnstile.leave(this.hold, false);
  }

  /**
   * Ends the turn here without ending the hold: another process goes on with it. A last renewal leaves that one a whole
   * ttl. Whatever rejects, the turn stays as it was, but for one thing: nobody else of this process gets the hold.
   */
  async handOff(): Promise<void> {
    const { hold, request } = this;
    if (!this.held) throw this.overError();
    hold.setApart();
    await this.#renewed(askTtlMs(request), 'handoff');
    await this.#clearProcess();
    if (!this.held) throw this.overError();
    this.#end('handed-off');
    hold.turnstile.handedOff(hold);
    hold.core.events.emit('handed-off', request, () => ({ token: this.token, heldMs: this.#heldMs() }));
  }

  /** Where the store would end the hold with this process, it must not any more. */
  async #clearProcess(): Promise<void> {
    const { hold, request } = this;
    const { core } = hold;
    const { store } = core;
    if (!store.handOff) return;
    const clear = store.handOff.bind(store, hold.id);
    hold.leaving = true;
    try {
      await insistWithin(core, clear, 'handoff', request.name);
    } finally {
      hold.leaving = false;
      if (!hold.ended) hold.renewal.dueWithin(0);
    }
  }

  #heldMs(): number {
    return Math.max(0, this.hold.core.storeNow() - this.acquiredAt);
  }
}
