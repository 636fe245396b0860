/** Bounds what a caller awaits: nothing hangs because a store does. */
import type { Command, Reply } from '../protocol/commands.js';
import { HoldfastError, NotExecutedError, StoreError } from '../protocol/errors.js';
import { Conversation, type Refusal, type Speaker } from './conversation.js';
import type { Core } from './core.js';
import type { Moment } from './validity.js';

/** How long to await an answer that no wait of the caller's bounds. */
const PATIENCE_MS = 5_000;
const AGAIN_MS = 50;

/** How much of a driver's message is repeated. */
const WORDS_MAX = 300;

/** The error for an operation that was not executed, or of which nobody knows whether it was. */
export function storeError(operation: string, key?: string, cause?: unknown): StoreError {
  const what = key === undefined ? operation : `${operation} of "${key}"`;
  if (cause instanceof NotExecutedError) return notExecutedError(`The ${what} failed`, operation, key, cause);
  const message =
    `The store did not answer the ${what}${because(cause)}, so what happened there is unknown. ` +
    'Check the store and try again.';
  return new StoreError(message, { key, cause, operation });
}

/** The same while a lock is being acquired. */
export function acquireError(name: string, cause: unknown): StoreError {
  const operation = 'acquire';
  if (cause instanceof NotExecutedError)
    return notExecutedError(`"${name}" was not acquired`, operation, name, cause);
  const message =
    `The store did not answer while "${name}" was being acquired${because(cause)}, so whether it was granted is ` +
    'unknown. Anything granted late is given back. Check the store and try again.';
  return new StoreError(message, { key: name, cause, operation });
}

function notExecutedError(
  what: string,
  operation: string,
  key: string | undefined,
  cause: NotExecutedError,
): StoreError {
  const why = shortened(cause.message);
  const message = `${what}: ${why}${/[?!]$/.test(why) ? '' : '.'} The store executed nothing.`;
  return new StoreError(message, { key, cause, operation, outcome: 'not-executed' });
}

export function because(cause: unknown): string {
  return cause instanceof Error && cause.message !== '' ? ` (${shortened(cause.message)})` : '';
}

function shortened(text: string): string {
  const words = text.trim().replace(/\.$/, '');
  return words.length > WORDS_MAX ? `${words.slice(0, WORDS_MAX)}…` : words;
}

/** The answer, or a `StoreError` when it fails or does not come. */
export function answerWithin<T>(
  core: Core,
  answer: Promise<T>,
  operation: string,
  key?: string,
  cause: () => unknown = () => undefined,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const onTimer = (): void => reject(storeError(operation, key, cause()));
    const timer = core.agenda.call(core.clock.monotonicMs() + PATIENCE_MS, onTimer);
    answer.then(
      (value) => {
        core.agenda.cancel(timer);
        if (core.loop.isBlocked()) core.loop.afterTurn(() => resolve(value));
        else resolve(value);
      },
      (error: unknown) => {
        core.agenda.cancel(timer);
        reject(error instanceof HoldfastError ? error : storeError(operation, key, error));
      },
    );
  });
}

/** What a store could not do just now it is asked again, until nobody awaits it any more. */
export function insistWithin(
  core: Core,
  work: () => Promise<void>,
  operation: string,
  key: string,
): Promise<void> {
  const untilMs = core.clock.monotonicMs() + PATIENCE_MS;
  const pause = (): Promise<void> =>
    new Promise((resolve) => {
      core.agenda.call(core.clock.monotonicMs() + AGAIN_MS, resolve);
    });
  const insist = async (): Promise<void> => {
    for (;;) {
      try {
        await work();
        return;
      } catch (error) {
        const isOver = core.clock.monotonicMs() + AGAIN_MS >= untilMs;
        if (error instanceof HoldfastError || isOver || isPermanent(error)) throw error;
      }
      await pause();
    }
  };
  return answerWithin(core, insist(), operation, key);
}

function isPermanent(error: unknown): boolean {
  return error instanceof NotExecutedError && error.retry === 'never';
}

/** A reply, and the moment before the attempt that it answers was sent. */
export interface Answer {
  readonly reply: Reply;
  readonly sent: Moment;
}

/** Says a command until it is answered, or until nobody awaits it any more. */
export async function askWithin(
  core: Core,
  command: Command,
  key: string,
  operation: string = command.kind,
): Promise<Answer> {
  const question = new Question();
  const talk = new Conversation(core, command, 4 * PATIENCE_MS, question);
  try {
    return await answerWithin(core, question.answer, operation, key, () => question.cause);
  } finally {
    talk.stop();
  }
}

class Question implements Speaker {
  readonly answer: Promise<Answer>;
  cause: unknown;
  onReply: (reply: Reply, sent: Moment) => void = () => undefined;
  onRefused: (error: Refusal) => void = () => undefined;

  constructor() {
    this.answer = new Promise((resolve, reject) => {
      this.onReply = (reply, sent) => resolve({ reply, sent });
      this.onRefused = reject;
    });
  }

  /** Nobody said how long to wait for a store that is not there. */
  onUnknown(cause: unknown): void {
    this.cause = cause;
    if (cause instanceof NotExecutedError && cause.retry !== 'at-once') this.onRefused(cause);
  }
}
