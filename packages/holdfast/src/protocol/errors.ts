/** Errors, by what the caller does next. They are here because stores raise some of them and import nothing else. */
import type { HolderInfo } from './holder-info.js';
import { keepName } from './keep-name.js';

/** The `code` of an error: one for each class, for programs that compare. */
export type ErrorCode = 'acquire-timeout' | 'lease-lost' | 'store' | 'invalid-argument' | 'unsupported';

/** The part that all errors take. */
interface Details {
  readonly key?: string | undefined;
  readonly cause?: unknown;
}

/** The base class of all errors of Holdfast. */
export abstract class HoldfastError extends Error {
  /** The same for every error of a class: for programs that compare. */
  abstract readonly code: ErrorCode;
  /** The key concerned, if there is one. */
  readonly key: string | undefined;

  constructor(message: string, details: Details = {}) {
    super(message, 'cause' in details ? { cause: details.cause } : undefined);
    this.key = details.key;
  }
}

/** Others held the key for as long as the caller was willing to wait. Try later. */
export class AcquireTimeoutError extends HoldfastError {
  static {
    keepName(AcquireTimeoutError, 'AcquireTimeoutError');
  }
  readonly code = 'acquire-timeout';
  /** The holders in the store's last reply, as in the message. */
  readonly holders: readonly HolderInfo[];

  constructor(message: string, details: Details & { readonly holders?: readonly HolderInfo[] } = {}) {
    super(message, details);
    this.holders = details.holders ?? [];
  }
}

/**
 * Why a lease was lost. `deadline`: no renewal was answered in time; `expired`: the store says that its time was over;
 * `evicted`: an operator ended it; `closed`: `close` or `releaseAll` did; `max-hold`: it reached its `maxHold`;
 * `replaced`: a later holder has the lock, or has written, or the store lost its record.
 */
export type LossReason = 'deadline' | 'expired' | 'evicted' | 'closed' | 'max-hold' | 'replaced';

/** The lease is over, and another may have the lock already. Stop now. */
export class LeaseLostError extends HoldfastError {
  static {
    keepName(LeaseLostError, 'LeaseLostError');
  }
  readonly code = 'lease-lost';
  /** Undefined if the lease was not lost: its user released it or handed it off before. */
  readonly reason: LossReason | undefined;
  /** The value of the work, if it finished after the loss. */
  readonly result: unknown;

  constructor(
    message: string,
    details: Details & { readonly reason?: LossReason | undefined; readonly result?: unknown } = {},
  ) {
    super(message, details);
    this.reason = details.reason;
    this.result = details.result;
  }
}

/** Whether a failed operation may have been executed. */
export type StoreOutcome = 'unknown' | 'not-executed';

/** The store failed. The message says why; `outcome` says whether the operation may have been executed. */
export class StoreError extends HoldfastError {
  static {
    keepName(StoreError, 'StoreError');
  }
  readonly code = 'store';
  /** The call or command that failed. */
  readonly operation: string;
  /** Whether it is certain that nothing was executed. */
  readonly outcome: StoreOutcome;

  constructor(
    message: string,
    details: Details & { readonly operation: string; readonly outcome?: StoreOutcome },
  ) {
    super(message, details);
    this.operation = details.operation;
    this.outcome = details.outcome ?? 'unknown';
  }
}

/**
 * When to send a command again that was not executed: `at-once`, another command was in the way; `while-waiting`, the
 * store is unavailable; `never`, waiting does not help.
 */
export type Retry = 'at-once' | 'while-waiting' | 'never';

/**
 * For stores: the command was certainly not executed. The message says why, in the driver's words, and what to do. Any
 * other rejection means that the outcome is unknown. Users get a `StoreError` with this message.
 */
export class NotExecutedError extends Error {
  static {
    keepName(NotExecutedError, 'NotExecutedError');
  }
  readonly retry: Retry;

  constructor(message: string, retry: Retry, cause?: unknown) {
    super(message, { cause });
    this.retry = retry;
  }
}

/** The call is wrong and nothing was sent. Fix the call. */
export class InvalidArgumentError extends HoldfastError {
  static {
    keepName(InvalidArgumentError, 'InvalidArgumentError');
  }
  readonly code = 'invalid-argument';
}

/** This store, server or record cannot do what was asked. Choose another store, or upgrade. */
export class UnsupportedError extends HoldfastError {
  static {
    keepName(UnsupportedError, 'UnsupportedError');
  }
  readonly code = 'unsupported';
}

/** Whether sending the command again does not help. */
export function isPermanent(error: unknown): error is UnsupportedError | NotExecutedError {
  return error instanceof UnsupportedError || (error instanceof NotExecutedError && error.retry === 'never');
}
