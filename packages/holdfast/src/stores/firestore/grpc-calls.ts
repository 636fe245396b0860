/**
 * Calls of gRPC clients: what their errors mean; and settings for a client of Google's, by which each call is sent once
 * and ends in time. By themselves, such clients retry for ten minutes, and wait for hung streams when they are closed:
 * the engine knows how long a retry makes sense.
 */
import { systemClock } from '../../clock.js';
import { messageOf, notExecuted } from '../clients/errors.js';

interface Status {
  readonly code: number;
  readonly details: string;
}

interface Listener {
  onReceiveMetadata(metadata: unknown): void;
  onReceiveMessage(message: unknown): void;
  onReceiveStatus(status: Status): void;
}

interface Call {
  start(metadata: unknown, listener: Listener): void;
  cancelWithStatus(code: number, details: string): void;
}

interface CallOptions {
  readonly method_definition: { readonly path: string };
}

const CANCELLED = 1;
const UNKNOWN = 2;
const INVALID_ARGUMENT = 3;
const NOT_FOUND = 5;
const ALREADY_EXISTS = 6;
const PERMISSION_DENIED = 7;
const FAILED_PRECONDITION = 9;
const UNAUTHENTICATED = 16;
/** The statuses that such clients retry: deadline, quota, aborted, internal, unavailable. */
const RETRIED: readonly number[] = [4, 8, 10, 13, 14];
/** Begins the details of an error of such a call. */
const SENT_ONCE = 'the call was sent once';
const NOT_SENT = new RegExp(
  `${SENT_ONCE}: No connection established.*?(ECONNREFUSED|ENOTFOUND|EAI_AGAIN)`,
  's',
);

/** What a failed call means. Null: its outcome is unknown. */
export type Refusal = 'invalid' | 'missing' | 'changed' | 'forbidden' | null;

const REFUSALS: ReadonlyMap<unknown, Refusal> = new Map([
  [INVALID_ARGUMENT, 'invalid'],
  [NOT_FOUND, 'missing'],
  [ALREADY_EXISTS, 'changed'],
  [FAILED_PRECONDITION, 'changed'],
  [PERMISSION_DENIED, 'forbidden'],
  [UNAUTHENTICATED, 'forbidden'],
]);

export function refusalOf(error: unknown): Refusal {
  return (error instanceof Error && 'code' in error && REFUSALS.get(error.code)) || null;
}

/** The error, as a `NotExecutedError` where the call was certainly not sent. */
export function unlessUnsent(error: unknown): unknown {
  const [, code] = NOT_SENT.exec(messageOf(error)) ?? [];
  if (code !== undefined) {
    return notExecuted(Object.assign(new Error(messageOf(error), { cause: error }), { code })) ?? error;
  }
  // A status is that of the last attempt only. A client that retries by itself may have sent an earlier one.
  const isStatus = error instanceof Error && 'code' in error && typeof error.code === 'number';
  return (isStatus ? null : notExecuted(error)) ?? error;
}

export class GrpcCalls {
  /** For the constructor of the client, as gRPC calls them. */
  readonly settings: Readonly<Record<string, unknown>> = {
    // Without it, streams are retried whatever their status.
    gaxServerStreamingRetries: true,
    'grpc.callInvocationTransformer': (call: { readonly callOptions: object }) => ({
      ...call,
      callOptions: { ...call.callOptions, interceptors: [this.#intercept] },
    }),
    'grpc.initial_reconnect_backoff_ms': 100,
    'grpc.max_reconnect_backoff_ms': 1_000,
  };
  readonly #limitMs: number;
  readonly #listenPath: string;
  readonly #listening = new Set<Call>();

  /** `listenPath`: the method whose calls last. */
  constructor(limitMs: number, listenPath: string) {
    this.#limitMs = limitMs;
    this.#listenPath = listenPath;
  }

  /** Ends the calls that last. */
  cancel(): void {
    for (const call of this.#listening) call.cancelWithStatus(CANCELLED, 'The client is closed.');
  }

  readonly #intercept = (options: CallOptions, next: (options: CallOptions) => Call): Call => {
    const isListening = options.method_definition.path === this.#listenPath;
    const deadline = systemClock.wallMs() + this.#limitMs;
    const call = next(isListening ? options : Object.assign({ ...options }, { deadline }));
    if (isListening) this.#listening.add(call);
    const start = call.start.bind(call);
    call.start = (metadata, listener) =>
      start(metadata, {
        onReceiveMetadata: (received) => listener.onReceiveMetadata(received),
        onReceiveMessage: (message) => listener.onReceiveMessage(message),
        onReceiveStatus: (status) => {
          this.#listening.delete(call);
          const details = `${SENT_ONCE}: ${status.details}`;
          const isFinal = isListening || !RETRIED.includes(status.code);
          listener.onReceiveStatus(isFinal ? status : { ...status, code: UNKNOWN, details });
        },
      });
    return call;
  };
}
