/**
 * Checks the store at the start. A store that has to be set up first (not migrated, missing rights) ends the start, with
 * the store's message on what to do. With a store that does not answer, the service starts, `/readyz` answers 503, and the
 * log repeats the reason until the store answers.
 */
import { UnsupportedError } from 'holdfast';
import type { Logger } from 'pino';
import { after, type Cancel, within } from './clock.js';
import type { Service } from './service.js';

/** How long the start waits for the store. */
const FIRST_LOOK_MS = 2_000;
const AGAIN_MS = 1_000;
const AGAIN_MS_MAX = 30_000;

/** Throws an `UnsupportedError` for a store that has to be set up first. Returns a function that ends the repeated checks. */
export async function checkStore(service: Pick<Service, 'checkStore'>, log: Logger): Promise<Cancel> {
  let cancel: Cancel = () => undefined;
  let isOver = false;
  const lookAgain = (pauseMs: number, error: unknown): void => {
    if (isOver) return;
    const level = error instanceof UnsupportedError ? 'error' : 'warn';
    log[level]({ error: textOf(error), againMs: pauseMs }, 'the store cannot be used yet: /readyz is 503');
    cancel = after(pauseMs, () => {
      service.checkStore().then(
        () => log.info('the store answers'),
        (next: unknown) => lookAgain(Math.min(2 * pauseMs, AGAIN_MS_MAX), next),
      );
    });
  };
  const first = service.checkStore().then(
    () => null,
    (error: unknown) => ({ error }),
  );
  const failure = await within(FIRST_LOOK_MS, first, {
    error: new Error('The store did not answer in time.'),
  });
  if (failure?.error instanceof UnsupportedError) throw failure.error;
  if (failure) lookAgain(AGAIN_MS, failure.error);
  return () => {
    isOver = true;
    cancel();
  };
}

/** The messages of the error and its causes. */
function textOf(error: unknown): string {
  const { cause, message } = error instanceof Error ? error : { cause: undefined, message: String(error) };
  return cause === undefined ? message : `${message} ${textOf(cause)}`;
}
