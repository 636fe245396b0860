/**
 * One command, sent until it is answered.
 *
 * 1. An attempt that is unanswered for a while, or rejected, is unknown: the store may have executed it.
 * 2. The same command, with the same hold, is sent again: applied twice it changes nothing more.
 * 3. The first reply to any of the attempts counts. Later ones are ignored.
 * 4. A command that was certainly not executed is sent again too, unless waiting does not help.
 */
import type { Clock, Moment } from '../clock.js';
import type { Command, Reply } from '../protocol/commands.js';
import { ATTEMPT_MS, ATTEMPT_MS_MIN } from '../protocol/constants.js';
import { isPermanent, NotExecutedError, UnsupportedError } from '../protocol/errors.js';
import type { Task, TimerQueue } from '../timer-queue.js';
import type { Batch, PendingCommand } from './batch.js';

/** The longest that an attempt is awaited, even with a long ttl, so that a caller notices soon that an outage is over. */
const ATTEMPT_MS_MAX = 30_000;
/** The pause before a rejected command is sent again, doubling with every attempt. */
const REJECTED_MS = 50;
const REJECTED_MS_MAX = 2_000;
/** The jitter before an unanswered command is sent again. */
const JITTER_MS = 25;

/** Nothing was executed, and sending the command again does not help. */
export type Refusal = UnsupportedError | NotExecutedError;

export interface RetryListener {
  /** The reply, and the moment before the attempt that it answers was sent. */
  onReply(reply: Reply, sent: Moment, from: RetriedCommand): void;
  /** No attempt so far was executed (`NotExecutedError`), or nobody knows. More attempts follow, until stopped. */
  onUnknown(cause: unknown, from: RetriedCommand): void;
  /** The store can never do this. Called once, and no attempt follows. Without this member, more attempts follow. */
  onRefused?(error: Refusal, from: RetriedCommand): void;
  /** How long a reply is of use from now on. An attempt is awaited for at most half of it. Default: no limit. */
  readonly remainingMs?: number;
}

/** The part of the store client that a retried command needs. */
export interface Sender {
  readonly clock: Clock;
  readonly timers: TimerQueue;
  readonly batch: Batch;
  /** How long the store took to answer last, up to the timeout of a first attempt. */
  roundTripMs: number;
  /** The store's time minus this process's monotonic time, by the last reply. */
  storeAheadMs: number;
}

/** Whether the store may have executed a command that failed like this. */
export const mayBeExecuted = (cause: unknown): boolean =>
  !(cause instanceof UnsupportedError || cause instanceof NotExecutedError);

/** How long the first attempt is awaited. A quarter of the ttl, as more attempts have to fit into it. */
const firstAttemptMs = (ttlMs: number): number => Math.min(ATTEMPT_MS, Math.max(ttlMs / 4, ATTEMPT_MS_MIN));

export class RetriedCommand implements Task, PendingCommand {
  index = -1;
  readonly command: Command;
  /** When the first attempt was sent, by each clock. The command is its own first attempt, as most need no other. */
  readonly monotonicMs: number;
  readonly wallMs: number;
  /** The number of attempts whose outcome is unknown: the store may execute them yet. */
  unanswered = 1;
  /** Whether an answer is still awaited. */
  open = true;
  readonly #sender: Sender;
  readonly #ttlMs: number;
  readonly #listener: RetryListener;
  readonly #isAwaited: boolean;
  #attempts = 1;
  /** How long the last attempt is awaited. */
  #limitMs: number;
  #wasTooLate = false;
  /** The attempt awaited now; null in the pause before the next. */
  #awaited: PendingCommand | null = this;

  /** `isAwaited`: the first attempt keeps the process alive. Later ones do not: by then the caller has a timer. */
  constructor(sender: Sender, command: Command, ttlMs: number, listener: RetryListener, isAwaited: boolean) {
    this.#sender = sender;
    this.command = command;
    this.#ttlMs = ttlMs;
    this.#listener = listener;
    this.#isAwaited = isAwaited;
    this.monotonicMs = sender.clock.monotonicMs();
    this.wallMs = sender.clock.wallMs();
    this.#limitMs = firstAttemptMs(ttlMs);
    if (!sender.batch.answersAtOnce) {
      sender.timers.schedule(this, this.monotonicMs + this.#limitMs, isAwaited);
    }
    sender.batch.send(this);
  }

  onReply(reply: Reply): void {
    this.answered(reply, this);
  }

  onFailure(cause: unknown): void {
    this.rejected(this, cause);
  }

  stop(): void {
    this.open = false;
    this.#sender.timers.cancel(this);
  }

  answered(reply: Reply, sent: Moment): void {
    this.unanswered -= 1;
    if (!this.open) return;
    this.open = false;
    const sender = this.#sender;
    sender.timers.cancel(this);
    sender.roundTripMs = Math.min(sender.clock.monotonicMs() - sent.monotonicMs, ATTEMPT_MS);
    sender.storeAheadMs = reply.now - sent.monotonicMs;
    this.#listener.onReply(reply, sent, this);
  }

  rejected(attempt: PendingCommand, cause: unknown): void {
    if (!mayBeExecuted(cause)) this.unanswered -= 1;
    if (!this.open) return;
    const known = this.known(cause);
    // Also if the rejection comes after the attempt counted as unanswered.
    if (this.#listener.onRefused && isPermanent(known)) {
      this.stop();
      this.#listener.onRefused(known, this);
      return;
    }
    if (attempt !== this.#awaited) return;
    this.#awaited = null;
    const { clock, timers } = this.#sender;
    const pauseMs = Math.min(this.#boundMs(REJECTED_MS), REJECTED_MS_MAX) * (0.5 + clock.random() / 2);
    timers.schedule(this, clock.monotonicMs() + pauseMs);
    this.#listener.onUnknown(known, this);
  }

  /** The cause to report. One attempt that was not executed proves nothing while another may have been. */
  known(cause: unknown): unknown {
    const isDoubtful = cause instanceof NotExecutedError && this.unanswered > 0;
    return isDoubtful ? new Error(cause.message, { cause }) : cause;
  }

  onDue(): void {
    const { clock, timers } = this.#sender;
    const nowMs = clock.monotonicMs();
    if (this.#awaited) {
      if (this.#isTooLate(nowMs - this.#awaited.monotonicMs)) {
        timers.schedule(this, nowMs + ATTEMPT_MS_MIN, this.#isAwaited && this.#attempts === 1);
        return;
      }
      this.#awaited = null;
      timers.schedule(this, nowMs + clock.random() * JITTER_MS);
      this.#listener.onUnknown(new Error('The store did not answer in time.'), this);
      return;
    }
    this.#attempts += 1;
    const mostMs = (this.#listener.remainingMs ?? Number.POSITIVE_INFINITY) / 2;
    this.#limitMs = Math.min(this.#boundMs(ATTEMPT_MS), Math.max(mostMs, firstAttemptMs(this.#ttlMs)));
    timers.schedule(this, nowMs + this.#limitMs);
    this.unanswered += 1;
    this.#awaited = new Repetition(this, nowMs, clock.wallMs());
    this.#sender.batch.send(this.#awaited);
  }

  /** True once: after a pause of the process the reply may be there already, and is read before this is due again. */
  #isTooLate(awaitedMs: number): boolean {
    if (this.#wasTooLate || awaitedMs - this.#limitMs < ATTEMPT_MS_MIN) return false;
    this.#wasTooLate = true;
    return true;
  }

  #boundMs(baseMs: number): number {
    const mostMs = Math.min(Math.max(this.#ttlMs / 4, ATTEMPT_MS_MIN), ATTEMPT_MS_MAX);
    return Math.min(baseMs * 2 ** (this.#attempts - 1), mostMs);
  }
}

/** One more sending of the command. */
class Repetition implements PendingCommand {
  readonly command: Command;
  readonly monotonicMs: number;
  readonly wallMs: number;
  readonly #of: RetriedCommand;

  constructor(of: RetriedCommand, monotonicMs: number, wallMs: number) {
    this.#of = of;
    this.command = of.command;
    this.monotonicMs = monotonicMs;
    this.wallMs = wallMs;
  }

  onReply(reply: Reply): void {
    this.#of.answered(reply, this);
  }

  onFailure(cause: unknown): void {
    this.#of.rejected(this, cause);
  }
}
