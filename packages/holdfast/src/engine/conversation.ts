/**
 * One command, said until it is answered. An attempt that is rejected or unanswered is unknown: the same command goes
 * out again, with the same hold. The first answer to any of the attempts counts; later ones are ignored.
 */
import type { Command, Reply } from '../protocol/commands.js';
import { ATTEMPT_MS } from '../protocol/constants.js';
import { HoldfastError } from '../protocol/errors.js';
import type { Appointment } from './agenda.js';
import type { Core } from './core.js';
import { type Moment, momentOf } from './validity.js';

/** The pause before a rejected command is said again, doubling with every attempt. */
const REJECTED_MS = 50;
/** The jitter before an unanswered one is. */
const JITTER_MS = 25;

export interface ConversationOptions {
  /** Whose quarter bounds how long an attempt is awaited. */
  readonly ttlMs: number;
  /** The answer, and the moment before the attempt that it answers was sent. */
  readonly onReply: (reply: Reply, sent: Moment) => void;
  /** An attempt came to nothing known. More follow, until stopped. */
  readonly onUnknown?: (cause: unknown) => void;
  /** The store can never do this: said once, and nothing follows. */
  readonly onRefused?: (error: HoldfastError) => void;
}

export class Conversation {
  readonly command: Command;
  readonly #core: Core;
  readonly #options: ConversationOptions;
  readonly #timer: Appointment;
  #attempts = 0;
  #unanswered = 0;
  #latest = 0;
  #open = true;

  constructor(core: Core, command: Command, options: ConversationOptions) {
    this.#core = core;
    this.command = command;
    this.#options = options;
    this.#timer = core.agenda.add(Number.POSITIVE_INFINITY, () => this.#onTimer());
    this.#say();
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
    this.#core.agenda.cancel(this.#timer);
  }

  #say(): void {
    this.#attempts += 1;
    this.#unanswered += 1;
    const attempt = this.#attempts;
    this.#latest = attempt;
    const sent = momentOf(this.#core.clock);
    this.#core.agenda.move(this.#timer, sent.monotonicMs + this.#patienceMs(ATTEMPT_MS));
    this.#core.batching.send(
      this.command,
      (reply) => {
        this.#unanswered -= 1;
        if (!this.#open) return;
        this.stop();
        this.#options.onReply(reply, sent);
      },
      (cause) => this.#onRejected(attempt, cause),
    );
  }

  #patienceMs(baseMs: number): number {
    return Math.min(baseMs * 2 ** (this.#attempts - 1), Math.max(this.#options.ttlMs / 4, 1));
  }

  #onTimer(): void {
    const nowMs = this.#core.clock.monotonicMs();
    if (this.#latest === 0) {
      this.#say();
      return;
    }
    this.#latest = 0;
    this.#core.agenda.move(this.#timer, nowMs + this.#core.clock.random() * JITTER_MS);
    this.#options.onUnknown?.(new Error('The store did not answer in time.'));
  }

  #onRejected(attempt: number, cause: unknown): void {
    if (!this.#open || attempt !== this.#latest) return;
    if (cause instanceof HoldfastError && this.#options.onRefused) {
      this.stop();
      this.#options.onRefused(cause);
      return;
    }
    this.#latest = 0;
    const pauseMs = this.#patienceMs(REJECTED_MS) * (0.5 + this.#core.clock.random() / 2);
    this.#core.agenda.move(this.#timer, this.#core.clock.monotonicMs() + pauseMs);
    this.#options.onUnknown?.(cause);
  }
}
