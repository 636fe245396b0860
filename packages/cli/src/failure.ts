/** Errors of the library as failures of the command. */
import {
  AcquireTimeoutError,
  HoldfastError,
  InvalidArgumentError,
  LeaseLostError,
  StoreError,
  UnsupportedError,
} from 'holdfast';
import { EXIT, Failure } from './exit.js';

const LOOKS = ['inspect', 'list', 'probe'];

/** The failure that an error of the library amounts to; null for a bug. */
export function failureOf(error: unknown): Failure | null {
  if (error instanceof Failure) return error;
  if (!(error instanceof HoldfastError)) return null;
  const status = statusOf(error);
  return new Failure(status, withCause(error), { code: error.code });
}

function statusOf(error: HoldfastError): number {
  if (error instanceof InvalidArgumentError) return EXIT.usage;
  if (error instanceof StoreError || error instanceof UnsupportedError) return EXIT.unavailable;
  if (error instanceof AcquireTimeoutError) return EXIT.notAcquired;
  if (error instanceof LeaseLostError) return EXIT.leaseLost;
  return EXIT.other;
}

/** "The store did not answer" helps nobody without what the engine said. */
function withCause(error: HoldfastError): string {
  const { cause, message } = error;
  if (!(cause instanceof Error) || cause.message === '' || message.includes(cause.message)) return message;
  // Who only looked wants to know why, and not what an unanswered look may have done.
  if (error instanceof StoreError && LOOKS.includes(error.operation)) {
    return cause.message;
  }
  return `${message.replace(/[.\s]+$/, '')}: ${cause.message}`;
}
