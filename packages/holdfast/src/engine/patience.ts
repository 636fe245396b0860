/** Bounds what a caller awaits: nothing hangs because a store does. */
import type { Command, Reply } from '../protocol/commands.js';
import { HoldfastError, StoreError, type UnsupportedError } from '../protocol/errors.js';
import { Conversation, type Speaker } from './conversation.js';
import type { Core } from './core.js';

/** How long to await an answer that no wait of the caller's bounds. */
const PATIENCE_MS = 5_000;

export function unansweredError(operation: string, key?: string, cause?: unknown): StoreError {
  const what = key === undefined ? operation : `${operation} of "${key}"`;
  const message = `The store did not answer the ${what}, so what happened there is unknown. Check the store and try again.`;
  return new StoreError(message, { key, cause, operation });
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
    const onTimer = (): void => reject(unansweredError(operation, key, cause()));
    const timer = core.agenda.call(core.clock.monotonicMs() + PATIENCE_MS, onTimer);
    answer.then(
      (value) => {
        core.agenda.cancel(timer);
        resolve(value);
      },
      (error: unknown) => {
        core.agenda.cancel(timer);
        reject(error instanceof HoldfastError ? error : unansweredError(operation, key, error));
      },
    );
  });
}

/** Says a command until it is answered, or until nobody awaits it any more. */
export async function askWithin(core: Core, command: Command, key: string): Promise<Reply> {
  const question = new Question();
  const talk = new Conversation(core, command, 4 * PATIENCE_MS, question);
  try {
    return await answerWithin(core, question.answer, command.kind, key, () => question.cause);
  } finally {
    talk.stop();
  }
}

class Question implements Speaker {
  readonly answer: Promise<Reply>;
  cause: unknown;
  onReply: (reply: Reply) => void = () => undefined;
  onRefused: (error: UnsupportedError) => void = () => undefined;

  constructor() {
    this.answer = new Promise((resolve, reject) => {
      this.onReply = resolve;
      this.onRefused = reject;
    });
  }

  onUnknown(cause: unknown): void {
    this.cause = cause;
  }
}
