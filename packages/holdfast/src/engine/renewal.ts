/**
 * Keeps a hold alive until it ends, and ends it at its deadline whether or not any reply ever comes (F3, P14).
 * A renewal that fails is jeopardy, never loss and never an unhandled rejection (F7, F8): only the store's word or the
 * deadline is loss.
 */
import type { Reply } from '../protocol/commands.js';
import { TOKEN_BLOCK } from '../protocol/constants.js';
import type { Appointment } from './agenda.js';
import { Conversation, type Speaker } from './conversation.js';
import type { Hold } from './hold.js';
import { isExclusive } from './request.js';
import { OVER } from './turn.js';
import type { Moment } from './validity.js';

/** Renewals begin when this share of the ttl is left, a little earlier so that many fall together. */
const LEFT_SHARE = 2 / 3;
const TOGETHER_SHARE = 1 / 30;

type Heard = (outcome: 'renewed' | 'lost') => void;

const NOBODY: readonly Heard[] = [];

export class Renewal implements Appointment, Speaker {
  index = -1;
  readonly #hold: Hold;
  #conversation: Conversation | null = null;
  #jeopardy = false;
  /** Why the last attempt to renew failed. */
  failure: unknown;
  #listeners: readonly Heard[] = NOBODY;
  /** A renewal wanted while another was under way: its ttl, to be sent next. */
  #wantedTtlMs: number | null = null;

  constructor(hold: Hold) {
    this.#hold = hold;
    hold.core.agenda.schedule(this, this.#nextMs());
  }

  /** Whether the last attempt to renew went unanswered. */
  get inJeopardy(): boolean {
    return this.#jeopardy;
  }

  get underWay(): boolean {
    return this.#conversation !== null;
  }

  /** Asks for a renewal sent from now on; `heard` is told how it ended. */
  demand(ttlMs: number, heard?: Heard): void {
    if (heard) this.#listeners = [...this.#listeners, heard];
    if (this.#conversation) this.#wantedTtlMs = Math.max(ttlMs, this.#wantedTtlMs ?? 0);
    else this.#send(ttlMs);
  }

  /** Looks at the hold again in so long at the latest. */
  dueWithin(ms: number): void {
    const { agenda, clock } = this.#hold.core;
    agenda.schedule(this, Math.min(agenda.dueMs(this), clock.monotonicMs() + ms));
  }

  stop(): void {
    const { core } = this.#hold;
    core.agenda.cancel(this);
    this.#conversation?.stop();
    this.#conversation = null;
    this.#tell('lost');
  }

  onDue(): void {
    const hold = this.#hold;
    const { remainingMs } = hold;
    if (remainingMs === 0) {
      hold.lose(OVER);
      return;
    }
    if (this.#isDue() && !this.#conversation) this.#send(hold.request.ttlMs);
    const { agenda, clock } = hold.core;
    agenda.schedule(this, Math.min(this.#nextMs(), clock.monotonicMs() + remainingMs));
  }

  /** None once it is being handed off: it would tell the store that this process still stands behind the hold. */
  #isDue(): boolean {
    return (
      this.#hold.request.renew && !this.#hold.leaving && this.#hold.core.clock.monotonicMs() >= this.#dueMs()
    );
  }

  /** Moments are shared by all holds of one ttl, so that thousands of renewals are a few batches. */
  #dueMs(): number {
    const { request, deadlineMs } = this.#hold;
    const gridMs = request.ttlMs * TOGETHER_SHARE;
    return Math.floor((deadlineMs - request.ttlMs * LEFT_SHARE) / gridMs) * gridMs;
  }

  #nextMs(): number {
    const { request, deadlineMs, leaving } = this.#hold;
    if (!request.renew || leaving || this.#conversation) return deadlineMs;
    return Math.min(this.#dueMs(), deadlineMs);
  }

  #send(ttlMs: number): void {
    const hold = this.#hold;
    const { key } = hold.request;
    const block = isExclusive(hold.request) && !hold.apart && hold.tokensLeft < TOKEN_BLOCK / 2;
    const command = { kind: 'renew', key, hold: hold.id, ttlMs, block } as const;
    this.#conversation = new Conversation(hold.core, command, hold.request.ttlMs, this);
  }

  onReply(reply: Reply, sent: Moment): void {
    const hold = this.#hold;
    this.#conversation = null;
    if (reply.kind !== 'renewed') {
      hold.lose('the store says that it is over: it expired there or was evicted', true);
    } else if (hold.remainingMs === 0) {
      hold.lose('its renewal was answered too late');
    } else {
      hold.hear(reply, sent);
      this.#onRenewed();
    }
  }

  onUnknown(cause: unknown): void {
    const hold = this.#hold;
    this.#jeopardy = true;
    this.failure = cause;
    if (hold.remainingMs === 0) {
      hold.lose(OVER);
    } else if (hold.turn) {
      const { token, request } = hold.turn;
      hold.core.events.emit('jeopardy', request, () => ({ token, remainingMs: hold.remainingMs, cause }));
    }
  }

  #onRenewed(): void {
    const hold = this.#hold;
    this.#jeopardy = false;
    this.failure = undefined;
    const wanted = this.#wantedTtlMs;
    this.#wantedTtlMs = null;
    if (wanted !== null) this.#send(wanted);
    else hold.suspect = false;
    hold.core.agenda.schedule(this, this.#nextMs());
    const { turn } = hold;
    if (turn) {
      const { token } = turn;
      hold.core.events.emit('renewed', turn.request, () => ({ token, remainingMs: hold.remainingMs }));
    }
    if (wanted !== null) return;
    this.#tell('renewed');
    hold.turnstile.renewed(hold);
  }

  #tell(outcome: 'renewed' | 'lost'): void {
    const listeners = this.#listeners;
    this.#listeners = NOBODY;
    for (const heard of listeners) heard(outcome);
  }
}
