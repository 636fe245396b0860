/** Errors of NATS, explained: refusals, and requests without an answer, whose outcome is unknown. */
import { NotExecutedError, UnsupportedError } from '../../protocol/index.js';
import { messageOf } from '../clients/errors.js';

/** What a server says of itself when a client connects. */
export interface ServerInfo {
  readonly version: string;
  readonly jetstream?: boolean;
  readonly cluster?: string;
  /** The name of its JetStream, where several are connected by leaf nodes. */
  readonly domain?: string;
}

export interface ApiError {
  readonly code: number;
  readonly err_code?: number;
  readonly description?: string;
}

/** Error numbers of the JetStream API. */
export const API = {
  noMessage: 10_037,
  messageTooLarge: 10_054,
  nameInUse: 10_058,
  noStream: 10_059,
  wrongLastSequence: 10_071,
  maxBytesRequired: 10_113,
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

/** For want of room: in the bucket, in the account or on the server. */
const NO_ROOM =
  /: (?:maximum (?:messages|bytes) exceeded|resource limits? exceeded|insufficient (?:\w+ )?resources)/;

/** A refused write. The server checks size and room before it stores a message. */
export function explainedWrite(error: unknown, key: string): unknown {
  if (isRefusal(error, API.messageTooLarge)) return tooLarge('in this bucket (max_msg_size)', error, key);
  if (!(error instanceof JetStreamError) || !NO_ROOM.test(error.message)) return error;
  const advice = 'Raise the limit of the bucket or the account, or delete unneeded data';
  return new NotExecutedError(
    `There is no room for the lock. ${error.message} ${advice}.`,
    'while-waiting',
    error,
  );
}

function tooLarge(where: string, cause: unknown, key?: string): UnsupportedError {
  return new UnsupportedError(
    `The record would be larger than a message may be ${where}. Fewer holders or waiters ` +
      'per key, or shorter owners and metadata, make it smaller. Nothing was changed.',
    { key, cause },
  );
}

const NO_RESPONDERS = 'NoResponders';

/** Whether the bucket itself may be gone. */
export function mayLackBucket(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return (
    isRefusal(error, API.noStream) || (error.cause instanceof Error && error.cause.name === NO_RESPONDERS)
  );
}

/** The error of a request without an answer. Clients wrap the reason once. */
export function unansweredError(
  error: unknown,
  subject: string,
  { info }: { readonly info?: ServerInfo | undefined },
): Error {
  if (error instanceof NotExecutedError) return error;
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const because = messageOf(cause);
  switch (cause instanceof Error ? cause.name : '') {
    case 'PermissionViolationError':
      return new UnsupportedError(
        `The user of this connection lacks a permission that locks need (${because}). Allow it to publish to ` +
          `"${subject}" and to subscribe to its "_INBOX.>".`,
        { cause },
      );
    case NO_RESPONDERS:
      if (subject.startsWith('$JS.API.')) return withoutJetStream(cause, info);
      return new Error(
        `No server answers "${subject}": the bucket is gone, or the servers that have it have no leader now.`,
        { cause },
      );
    case 'InvalidArgumentError':
      // Reported by the client, before anything is sent.
      if (!because.includes('max_payload')) {
        return new Error(`The request "${subject}" was not sent to NATS: ${because}.`, { cause });
      }
      return tooLarge('on this NATS server (max_payload)', cause);
    default:
      return new Error(`NATS did not answer "${subject}": ${because}.`, { cause });
  }
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
