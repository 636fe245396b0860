/**
 * A command whose reply a caller awaits, for a limited time. One object with one promise, because every request to a
 * service needs one.
 */
import type { Moment } from '../clock.js';
import type { Command, Reply } from '../protocol/commands.js';
import { type HoldfastError, NotExecutedError, UnsupportedError } from '../protocol/errors.js';
import type { Task } from '../timer-queue.js';
import { type Refusal, RetriedCommand, type RetryListener, type Sender } from './retried-command.js';
import { storeError, unsupportedError } from './store-error.js';

/** A reply, and the moment before the attempt that it answers was sent. */
export interface Answer {
  readonly reply: Reply;
  readonly sent: Moment;
}

/** A command, with the words of its caller for errors. */
export interface Question {
  readonly command: Command;
  readonly operation: string;
  /** The key, in errors. */
  readonly name: string;
  readonly awaitedMs: number;
  /** Whether to repeat it, until the time is over, while the store is known to be away. */
  readonly whileAway: boolean;
}

export class AskedCommand implements RetryListener, Task {
  index = -1;
  readonly #sender: Sender;
  readonly #question: Question;
  readonly #resolve: (answer: Answer) => void;
  readonly #reject: (error: HoldfastError) => void;
  readonly #retried: RetriedCommand;
  #cause: unknown;

  constructor(
    sender: Sender,
    question: Question,
    resolve: (answer: Answer) => void,
    reject: (error: HoldfastError) => void,
  ) {
    this.#sender = sender;
    this.#question = question;
    this.#resolve = resolve;
    this.#reject = reject;
    const { command, awaitedMs } = question;
    this.#retried = new RetriedCommand(sender, command, 4 * awaitedMs, this, false);
    sender.timers.schedule(this, this.#retried.monotonicMs + awaitedMs, true);
  }

  onReply(reply: Reply, sent: Moment): void {
    const { timers } = this.#sender;
    timers.cancel(this);
    const answer = { reply, sent };
    if (timers.isBlocked()) timers.afterTurn(() => this.#resolve(answer));
    else this.#resolve(answer);
  }

  onUnknown(cause: unknown): void {
    this.#cause = cause;
    // The caller did not say how long to wait for a store that is away.
    const isAway = cause instanceof NotExecutedError && cause.retry !== 'at-once';
    if (isAway && !this.#question.whileAway) this.onRefused(cause);
  }

  onRefused(error: Refusal): void {
    const { operation, name } = this.#question;
    this.#fail(
      error instanceof UnsupportedError ? unsupportedError(name, error) : storeError(operation, name, error),
    );
  }

  /** No reply came in time. */
  onDue(): void {
    const { operation, name } = this.#question;
    this.#fail(storeError(operation, name, this.#retried.known(this.#cause)));
  }

  #fail(error: HoldfastError): void {
    this.#sender.timers.cancel(this);
    this.#retried.stop();
    this.#reject(error);
  }
}
