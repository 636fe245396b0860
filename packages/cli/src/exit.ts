/** Exit statuses, and the failure that is told in one line. Anything else that is thrown is a bug and exits 1. */

/** From sysexits.h and the shell, so that scripts and supervisors know them already. */
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

/** What a shell reports for a command that a signal ended: this and the signal's number. */
export const SIGNAL_BASE = 128;

/** A failure that is told in one line. `details` go into the JSON form only. */
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
