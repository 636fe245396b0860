/** A granted hold: its tokens, how long it is certain, whether others wait for it, and the turn that stands on it. */
import type { Granted, Renewed } from '../protocol/commands.js';
import type { HoldId } from '../protocol/state.js';
import type { Core } from './core.js';
import { Renewal } from './renewal.js';
import type { Request } from './request.js';
import { OVER, Turn } from './turn.js';
import type { Turnstile } from './turnstile.js';
import { type Moment, validityOf } from './validity.js';

export class Hold {
  readonly turnstile: Turnstile;
  /** Of its id: this process's own, or that of the process that handed it off. */
  readonly #process: string;
  readonly #number: number;
  readonly request: Request;
  readonly renewal: Renewal;
  /** By the store's clock. */
  expiresAt: number;
  /** The last moment at which it is certain, by each clock. */
  deadlineMs: number;
  deadlineWallMs: number;
  turn: Turn | null = null;
  /** Since when this process knows that others wait; null while nobody does. */
  othersSinceMs: number | null = null;
  /** An eviction was heard of: nothing is handed over until a renewal sent afterwards has answered (F29). */
  suspect = false;
  /** Stretched, being handed off, or adopted: not what others of this process ask for, so none of them gets it (F29). */
  #apart = false;
  /** Its last renewal here has been answered, and it is about to be handed off. */
  leaving = false;
  ended = false;
  #nextToken: number;
  #tokenLast: number;

  constructor(turnstile: Turnstile, id: HoldId, request: Request, reply: Granted, sent: Moment) {
    this.turnstile = turnstile;
    this.#process = id.process;
    this.#number = id.number;
    this.request = request;
    this.expiresAt = reply.expiresAt;
    const validity = validityOf(sent, reply);
    this.deadlineMs = validity.monotonicMs;
    this.deadlineWallMs = validity.wallMs;
    this.core.noteAnswer(reply.now, sent);
    this.#nextToken = reply.token;
    this.#tokenLast = reply.tokenLast;
    this.noteOthers(reply.othersWait, sent.monotonicMs);
    this.core.holdBegan();
    this.renewal = new Renewal(this);
  }

  get core(): Core {
    return this.turnstile.core;
  }

  get id(): HoldId {
    return { process: this.#process, number: this.#number };
  }

  /** Over when either clock says so: a suspended machine stops the monotonic one (F1, F11). */
  get remainingMs(): number {
    if (this.ended) return 0;
    const { clock } = this.core;
    return Math.max(0, Math.min(this.deadlineMs - clock.monotonicMs(), this.deadlineWallMs - clock.wallMs()));
  }

  /** How long the store may keep it, whatever is said from now on: a stretched one outlives its ttl. */
  get lifeMs(): number {
    const { ttlMs } = this.request;
    return this.#apart ? Math.max(ttlMs, this.expiresAt - this.core.storeNow()) : ttlMs;
  }

  get apart(): boolean {
    return this.#apart;
  }

  /** Nobody else of this process gets it from now on: those who wait contend at the store. */
  setApart(): void {
    if (this.#apart) return;
    this.#apart = true;
    this.turnstile.setApart();
  }

  get tokensLeft(): number {
    return this.#tokenLast - this.#nextToken + 1;
  }

  /** The next turn on this hold, with a token above that of the last. */
  begin(acquiredAt: number): Turn {
    this.turn = new Turn(this, this.#nextToken, acquiredAt);
    this.#nextToken += 1;
    return this.turn;
  }

  /** `sentMs`: when what tells this was asked for. An answer older than a hint does not take it back. */
  noteOthers(othersWait: boolean, sentMs: number): void {
    if (othersWait) this.othersSinceMs ??= this.core.clock.monotonicMs();
    else if (this.othersSinceMs !== null && sentMs >= this.othersSinceMs) this.othersSinceMs = null;
  }

  /** Takes a renewal in. A reply that answers an older attempt never shortens what a newer one granted. */
  hear(reply: Renewed, sent: Moment): void {
    const heard = validityOf(sent, reply);
    if (heard.monotonicMs > this.deadlineMs) {
      this.deadlineMs = heard.monotonicMs;
      this.deadlineWallMs = heard.wallMs;
    }
    this.expiresAt = Math.max(this.expiresAt, reply.expiresAt);
    this.core.noteAnswer(reply.now, sent);
    this.noteOthers(reply.othersWait, sent.monotonicMs);
    const { block } = reply;
    if (block && block.token >= this.#nextToken) {
      this.#nextToken = block.token;
      this.#tokenLast = block.tokenLast;
    }
  }

  /** The clocks went apart: it may be over by one of them, or be over sooner than its timer knows. */
  check(): void {
    if (this.ended) return;
    if (this.remainingMs === 0) this.lose(OVER);
    else this.renewal.dueWithin(this.remainingMs);
  }

  /** The hold is over without a release. Whoever stands on it is told at once. */
  lose(reason: string, toldByStore = false): void {
    if (this.ended) return;
    const { turn } = this;
    turn?.noteLoss(reason);
    this.end();
    if (!toldByStore) this.core.withdraw(this.request.key, this.id, this.request.ttlMs, this.lifeMs);
    this.turn = null;
    this.turnstile.lost(this);
    turn?.tellLoss();
  }

  end(): void {
    if (this.ended) return;
    this.ended = true;
    this.core.holdEnded();
    this.renewal.stop();
  }
}
