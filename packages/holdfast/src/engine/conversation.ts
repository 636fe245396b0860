/**
 * One command, sent until it is answered. An attempt that is unanswered, or rejected without a word on what happened, is
 * unknown: the same command goes out again, with the same hold. So does one that was not executed, unless waiting does
 * not help. The first answer to any of the attempts counts; later ones are ignored.
 */
import type { Command, Reply } from '../protocol/commands.js';
import { ATTEMPT_MS } from '../protocol/constants.js';
import { NotExecutedError, UnsupportedError } from '../protocol/errors.js';
import type { Appointment } from './agenda.js';
import type { Outgoing } from './batching.js';
import type { Core } from './core.js';
import type { Moment } from './validity.js';

/** The pause before a rejected command is said again, doubling with every attempt. */
const REJECTED_MS = 50;
const REJECTED_MS_MAX = 2_000;
/** The jitter before an unanswered one is. */
const JITTER_MS = 25;

/** Nothing was executed, and asking again does not help. */
export type Refusal = UnsupportedError | NotExecutedError;

/** Who began a conversation, and what it wants to hear of it. */
export interface Speaker {
  /** The answer, and the moment before the attempt that it answers was sent. */
  onReply(reply: Reply, sent: Moment, talk: Conversation): void;
  /** No attempt so far was executed (`NotExecutedError`), or it is unknown whether one was. More follow, until stopped. */
  onUnknown(cause: unknown, talk: Conversation): void;
  /** The store can never do this: said once, and nothing follows. Without it, more attempts follow. */
  onRefused?(error: Refusal, talk: Conversation): void;
}

export class Conversation implements Appointment {
  index = -1;
  readonly command: Command;
  readonly sinceMs: number;
  readonly #core: Core;
  readonly #ttlMs: number;
  readonly #speaker: Speaker;
  #attempts = 0;
  #unanswered = 0;
  /** The attempt awaited now; null in the pause before the next. */
  #awaited: Attempt | null = null;
  #open = true;

  /** A quarter of `ttlMs` bounds how long an attempt is awaited. */
  constructor(core: Core, command: Command, ttlMs: number, speaker: Speaker) {
    this.#core = core;
    this.command = command;
    this.#ttlMs = ttlMs;
    this.#speaker = speaker;
    const nowMs = core.clock.monotonicMs();
    this.sinceMs = nowMs;
    this.#attempts = 1;
    core.agenda.schedule(this, nowMs + this.#patienceMs(ATTEMPT_MS));
    this.#send(nowMs);
  }

  /** Attempts whose outcome nobody knows: the store may apply them yet. */
  get unanswered(): number {
    return this.#unanswered;
  }

  get open(): boolean {
    return this.#open;
  }

  stop(): void {
    this.#open = false;
    this.#core.agenda.cancel(this);
  }

  heard(reply: Reply, sent: Moment): void {
    this.#unanswered -= 1;
    if (!this.#open) return;
    this.stop();
    this.#speaker.onReply(reply, sent, this);
  }

  rejected(attempt: Attempt, cause: unknown): void {
    if (cause instanceof UnsupportedError || cause instanceof NotExecutedError) this.#unanswered -= 1;
    if (!this.#open || attempt !== this.#awaited) return;
    const known = this.#known(cause);
    if (this.#speaker.onRefused && isPermanent(known)) {
      this.stop();
      this.#speaker.onRefused(known, this);
      return;
    }
    this.#awaited = null;
    const mostMs = Math.min(this.#patienceMs(REJECTED_MS), REJECTED_MS_MAX);
    const pauseMs = mostMs * (0.5 + this.#core.clock.random() / 2);
    this.#core.agenda.schedule(this, this.#core.clock.monotonicMs() + pauseMs);
    this.#speaker.onUnknown(known, this);
  }

  /** That one attempt was not executed says nothing while another may have been. */
  #known(cause: unknown): unknown {
    const isDoubtful = cause instanceof NotExecutedError && this.#unanswered > 0;
    return isDoubtful ? new Error(cause.message, { cause }) : cause;
  }

  onDue(): void {
    const { agenda, clock } = this.#core;
    const nowMs = clock.monotonicMs();
    if (this.#awaited) {
      this.#awaited = null;
      agenda.schedule(this, nowMs + clock.random() * JITTER_MS);
      this.#speaker.onUnknown(new Error('The store did not answer in time.'), this);
      return;
    }
    this.#attempts += 1;
    agenda.schedule(this, nowMs + this.#patienceMs(ATTEMPT_MS));
    this.#send(nowMs);
  }

  #send(nowMs: number): void {
    this.#unanswered += 1;
    this.#awaited = new Attempt(this, nowMs, this.#core.clock.wallMs());
    this.#core.batching.send(this.#awaited);
  }

  #patienceMs(baseMs: number): number {
    return Math.min(baseMs * 2 ** (this.#attempts - 1), Math.max(this.#ttlMs / 4, 1));
  }
}

function isPermanent(cause: unknown): cause is Refusal {
  return cause instanceof UnsupportedError || (cause instanceof NotExecutedError && cause.retry === 'never');
}

/** One sending of the command; itself the moment before it was sent. */
class Attempt implements Outgoing, Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
  readonly #talk: Conversation;

  constructor(talk: Conversation, monotonicMs: number, wallMs: number) {
    this.#talk = talk;
    this.monotonicMs = monotonicMs;
    this.wallMs = wallMs;
  }

  get command(): Command {
    return this.#talk.command;
  }

  onReply(reply: Reply): void {
    this.#talk.heard(reply, this);
  }

  onFailure(cause: unknown): void {
    this.#talk.rejected(this, cause);
  }
}
