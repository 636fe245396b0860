/** Errors of NATS, explained: refusals, and requests without an answer, whose outcome is unknown. */
import { NotExecutedError, UnsupportedError } from '../../protocol/index.js';
import { messageOf } from '../clients/errors.js';

export interface ServerInfo {
  readonly version: string;
  readonly jetstream?: boolean;
  readonly cluster?: string;
}

export interface ApiError {
  readonly code: number;
  readonly err_code?: number;
  readonly description?: string;
}

/** Error numbers of the JetStream API. */
export const API = {
  noMessage: 10_037,
  noMessageToDelete: 10_057,
  nameInUse: 10_058,
  noStream: 10_059,
  wrongLastSequence: 10_071,
  /** The same, as servers from 2.11 on say it. */
  wrongLastSequenceUnnamed: 10_164,
} as const;

/** A refusal of JetStream. */
export class JetStreamError extends Error {
  readonly number: number;

  constructor({ err_code, code, description }: ApiError, subject: string) {
    const number = err_code ?? code;
    super(`JetStream refuses ${subject}: ${description ?? 'no reason given'} (error ${number}).`);
    this.name = 'JetStreamError';
    this.number = number;
  }
}

export function isRefusal(error: unknown, ...numbers: readonly number[]): boolean {
  return error instanceof JetStreamError && numbers.includes(error.number);
}

/** Whether the bucket itself may be gone. */
export function mayLackBucket(error: unknown): boolean {
  return isRefusal(error, API.noStream) || (error instanceof Error && nameOf(error.cause) === NO_RESPONDERS);
}

const NO_RESPONDERS = 'NoResponders';

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : '';
}

/** The error of a request without an answer. Clients wrap the reason once. */
export function unansweredError(
  error: unknown,
  subject: string,
  { info }: { readonly info?: ServerInfo | undefined },
): Error {
  if (error instanceof NotExecutedError) return error;
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  switch (nameOf(inner)) {
    case 'PermissionViolationError':
      return new UnsupportedError(
        `The user of this connection lacks a permission that locks need (${messageOf(inner)}). Allow it to publish to ` +
          `"${subject}" and to subscribe to its "_INBOX.>".`,
        { cause: inner },
      );
    case NO_RESPONDERS:
      return subject.startsWith('$JS.API.') ? withoutJetStream(inner, info) : withoutLeader(inner, subject);
    case 'InvalidArgumentError':
      return (
        tooLarge(inner) ??
        new Error(`The request "${subject}" was not sent to NATS: ${messageOf(inner)}.`, { cause: inner })
      );
    default:
      return new Error(`NATS did not answer "${subject}": ${messageOf(inner)}.`, { cause: inner });
  }
}

/** Reported by the client, before anything is sent. */
function tooLarge(cause: unknown): UnsupportedError | null {
  if (!messageOf(cause).includes('max_payload')) return null;
  return new UnsupportedError(
    'The record would be larger than a message may be on this NATS server (max_payload). Fewer holders or waiters per ' +
      'key, or shorter owners and metadata, make it smaller. Nothing was changed.',
    { cause },
  );
}

function withoutJetStream(cause: unknown, info: ServerInfo | undefined): Error {
  const remedy = 'Locks are kept in JetStream: start the server with -js, or enable it for the account.';
  if (info?.jetstream !== true) {
    return new UnsupportedError(`JetStream is not enabled on this NATS server. ${remedy}`, { cause });
  }
  return new Error(
    `JetStream does not answer: it is not enabled for this account, or no server that has it can be reached. ${remedy}`,
    { cause },
  );
}

function withoutLeader(cause: unknown, subject: string): Error {
  const text = `Nobody answers "${subject}": the bucket is gone, or the servers that have it have no leader now.`;
  return new Error(text, { cause });
}
