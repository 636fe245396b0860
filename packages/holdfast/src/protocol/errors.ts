/** Errors, by what the caller does next. Here, because stores raise some of them and import nothing else. */

export type ErrorCode = 'acquire-timeout' | 'lease-lost' | 'store' | 'invalid-argument' | 'unsupported';

interface Details {
  readonly key?: string | undefined;
  readonly cause?: unknown;
}

/** What all errors of Holdfast have in common. */
export abstract class HoldfastError extends Error {
  abstract readonly code: ErrorCode;
  /** The key concerned, where there is one. */
  readonly key: string | undefined;

  constructor(message: string, details: Details = {}) {
    super(message, 'cause' in details ? { cause: details.cause } : undefined);
    this.name = new.target.name;
    this.key = details.key;
  }
}

/** Somebody else held the key for as long as the caller was willing to wait. Try later. */
export class AcquireTimeoutError extends HoldfastError {
  readonly code = 'acquire-timeout';
  /** Who held it when last asked, for people to read. */
  readonly holders: readonly string[];

  constructor(message: string, details: Details & { readonly holders?: readonly string[] } = {}) {
    super(message, details);
    this.holders = details.holders ?? [];
  }
}

/** The lease is over and the lock may be another's already. Stop now. */
export class LeaseLostError extends HoldfastError {
  readonly code = 'lease-lost';
  /** What the work returned, where it finished after the loss. */
  readonly result: unknown;

  constructor(message: string, details: Details & { readonly result?: unknown } = {}) {
    super(message, details);
    this.result = details.result;
  }
}

/** The store did not answer: what happened there is unknown. */
export class StoreError extends HoldfastError {
  readonly code = 'store';
  readonly operation: string;

  constructor(message: string, details: Details & { readonly operation: string }) {
    super(message, details);
    this.operation = details.operation;
  }
}

/** The call is wrong and nothing was sent. Fix the call. */
export class InvalidArgumentError extends HoldfastError {
  readonly code = 'invalid-argument';
}

/** This store, server or record cannot do what was asked. Choose another store, or upgrade. */
export class UnsupportedError extends HoldfastError {
  readonly code = 'unsupported';
}
