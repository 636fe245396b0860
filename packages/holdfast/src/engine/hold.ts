/** A granted hold: its tokens, how long it is certain, whether others wait for it, and the turn that stands on it. */
import type { Granted, Renewed } from '../protocol/commands.js';
import type { HoldId } from '../protocol/state.js';
import type { Core } from './core.js';
import { Renewal } from './renewal.js';
import type { Request } from './request.js';
import { Turn } from './turn.js';
import type { Turnstile } from './turnstile.js';
import { type Moment, remainingMs, type Validity, validityOf } from './validity.js';

export class Hold {
  readonly core: Core;
  readonly turnstile: Turnstile;
  readonly id: HoldId;
  readonly request: Request;
  readonly grantedMs: number;
  readonly renewal: Renewal;
  /** By the store's clock. */
  expiresAt: number;
  validity: Validity;
  turn: Turn | null = null;
  roundTripMs: number;
  /** Since when this process knows that others wait; null while nobody does. */
  othersSinceMs: number | null = null;
  /** An eviction was heard of: nothing is handed over until a renewal sent afterwards has answered (F29). */
  suspect = false;
  /** Stretched by the caller: what others in the process would get is not what they asked for. */
  stretched = false;
  ended = false;
  readonly #storeAheadMs: number;
  #lastToken = 0;
  #nextToken: number;
  #tokenLast: number;

  constructor(turnstile: Turnstile, id: HoldId, request: Request, reply: Granted, sent: Moment) {
    this.core = turnstile.core;
    this.turnstile = turnstile;
    this.id = id;
    this.request = request;
    this.expiresAt = reply.expiresAt;
    this.validity = validityOf(sent, reply);
    this.grantedMs = this.core.clock.monotonicMs();
    this.roundTripMs = this.grantedMs - sent.monotonicMs;
    this.#storeAheadMs = reply.now - sent.monotonicMs;
    this.#nextToken = reply.token;
    this.#tokenLast = reply.tokenLast;
    this.noteOthers(reply.othersWait);
    this.renewal = new Renewal(this);
  }

  get remainingMs(): number {
    return this.ended ? 0 : remainingMs(this.validity, this.core.clock);
  }

  get tokensLeft(): number {
    return this.#tokenLast - this.#nextToken + 1;
  }

  /** The next turn on this hold, with a token above that of the last. */
  begin(request: Request, acquiredAt: number): Turn {
    this.#lastToken = this.#nextToken;
    this.#nextToken += 1;
    this.turn = new Turn(this, request, this.#lastToken, acquiredAt);
    return this.turn;
  }

  /** The store's time at this moment, as far as this process can tell. For people to read. */
  get storeNow(): number {
    return Math.round(this.core.clock.monotonicMs() + this.#storeAheadMs);
  }

  noteOthers(othersWait: boolean): void {
    if (!othersWait) this.othersSinceMs = null;
    else this.othersSinceMs ??= this.core.clock.monotonicMs();
  }

  /** Takes a renewal in. A reply that answers an older attempt never shortens what a newer one granted. */
  hear(reply: Renewed, sent: Moment): void {
    const heard = validityOf(sent, reply);
    if (heard.monotonicMs > this.validity.monotonicMs) this.validity = heard;
    this.expiresAt = Math.max(this.expiresAt, reply.expiresAt);
    this.roundTripMs = this.core.clock.monotonicMs() - sent.monotonicMs;
    this.noteOthers(reply.othersWait);
    const { block } = reply;
    if (block && block.token > this.#lastToken) {
      this.#nextToken = block.token;
      this.#tokenLast = block.tokenLast;
    }
  }

  /** The hold is over without a release. Whoever stands on it is told at once. */
  lose(reason: string, toldByStore = false): void {
    if (this.ended) return;
    this.end();
    if (!toldByStore) this.core.withdraw(this.request.key, this.id, this.request.ttlMs);
    const { turn } = this;
    this.turn = null;
    this.turnstile.lost(this);
    turn?.lose(reason);
  }

  end(): void {
    this.ended = true;
    this.renewal.stop();
  }
}
