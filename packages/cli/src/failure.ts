/** Exit statuses, and failures that are reported in one line. Any other error is a bug and exits 1. */
import {
  AcquireTimeoutError,
  HoldfastError,
  InvalidArgumentError,
  LeaseLostError,
  StoreError,
  UnsupportedError,
} from 'holdfast';

/** The exit statuses come from sysexits.h and the shell, so that scripts and supervisors know them. */
export const EXIT = {
  ok: 0,
  other: 1,
  usage: 64,
  unavailable: 69,
  notAcquired: 75,
  leaseLost: 76,
  notExecutable: 126,
  notFound: 127,
} as const;

const READS = ['inspect', 'list', 'probe'];

/** A failure that is reported in one line. `details` are for the JSON form only. */
export class Failure extends Error {
  readonly status: number;
  readonly details: { readonly [name: string]: unknown };

  constructor(status: number, message: string, details: { readonly [name: string]: unknown } = {}) {
    super(message);
    this.name = 'Failure';
    this.status = status;
    this.details = details;
  }
}

export function usageFailure(message: string): Failure {
  return new Failure(EXIT.usage, message);
}

/** The text of any error. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The failure for an error of the library; null for a bug. */
export function failureOf(error: unknown): Failure | null {
  if (error instanceof Failure) return error;
  if (!(error instanceof HoldfastError)) return null;
  return new Failure(statusOf(error), messageOf(error), { code: error.code });
}

function statusOf(error: HoldfastError): number {
  if (error instanceof InvalidArgumentError) return EXIT.usage;
  if (error instanceof StoreError || error instanceof UnsupportedError) return EXIT.unavailable;
  if (error instanceof AcquireTimeoutError) return EXIT.notAcquired;
  if (error instanceof LeaseLostError) return EXIT.leaseLost;
  return EXIT.other;
}

/** Adds the driver's own words if the store failed: "the store did not answer" alone does not help. */
function messageOf(error: HoldfastError): string {
  const { cause, message } = error;
  if (!(error instanceof StoreError && cause instanceof Error) || cause.message === '') return message;
  // A read changes nothing, so the message need not say whether it was executed.
  if (READS.includes(error.operation)) return cause.message;
  if (message.includes(cause.message)) return message;
  return `${message.replace(/[.\s]+$/, '')}: ${cause.message}`;
}
