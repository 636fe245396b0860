/**
 * The members of a connection that are used, and requests to JetStream's API over it: plain requests with JSON. No
 * client is imported: of a headers object, a client only calls `encode()`.
 */
import { InvalidArgumentError } from '../../protocol/index.js';
import { type ApiError, JetStreamError, type ServerInfo, unansweredError } from './errors.js';

/** A message of a `NatsConnection`. */
export interface NatsMessage {
  readonly subject: string;
  readonly data: Uint8Array;
}

/** A subscription of a `NatsConnection`. */
export interface NatsSubscription {
  unsubscribe(): void;
}

/** A connection of @nats-io/transport-node 3: the result of its `connect`. */
export interface NatsConnection {
  request(
    subject: string,
    payload?: Uint8Array | string,
    options?: { readonly timeout: number; readonly headers?: unknown },
  ): Promise<NatsMessage>;
  publish(
    subject: string,
    payload?: Uint8Array | string,
    options?: { readonly reply?: string; readonly headers?: unknown },
  ): void;
  subscribe(
    subject: string,
    options?: { callback?: (error: Error | null, message: NatsMessage) => void },
  ): NatsSubscription;
  flush(): Promise<void>;
  /** What happens to the connection: a `type` of 'disconnect', 'reconnect', 'error' and others. */
  status(): AsyncIterable<{ readonly type: string }>;
  isClosed(): boolean;
  readonly info?: ServerInfo | undefined;
  /** What it was opened with. */
  readonly options?: { readonly inboxPrefix?: string | undefined } | undefined;
}

const METHODS = ['request', 'publish', 'subscribe', 'flush', 'status', 'isClosed'] as const;

export function checkConnection(connection: unknown): NatsConnection {
  const given = connection as Partial<Record<string, unknown>> | null | undefined;
  if (typeof given === 'object' && given && METHODS.every((name) => typeof given[name] === 'function')) {
    return connection as NatsConnection;
  }
  throw new InvalidArgumentError(
    'The connection is not a NATS connection. Pass the result of `await connect({ servers })` of @nats-io/transport-node; ' +
      'not a URL, a JetStream client or a promise of a connection.',
  );
}

/** After this time without an answer, the outcome of a request is unknown. The core asks again much sooner. */
export const ANSWER_MS_MAX = 2_000;

/** The bytes of the answer. Rejects with the reason where there is none. */
export async function requestBytes(
  connection: NatsConnection,
  subject: string,
  payload: string,
  headers?: unknown,
): Promise<Uint8Array> {
  try {
    return (await connection.request(subject, payload, { timeout: ANSWER_MS_MAX, headers })).data;
  } catch (error) {
    throw unansweredError(error, subject, connection);
  }
}

/** Throws a `JetStreamError` for a refusal. */
export function parseResponse(data: Uint8Array, subject: string): ApiResponse {
  const answer = JSON.parse(textOf(data)) as ApiResponse;
  if (answer.error) throw new JetStreamError(answer.error, subject);
  return answer;
}

export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

/** The members that are used of JetStream's responses, of all kinds. */
export interface ApiResponse {
  readonly error?: ApiError;
  /** Of a message that was stored. */
  readonly stream?: string;
  readonly seq?: number;
  /** A message of the same id was stored before; this one was not. */
  readonly duplicate?: boolean;
  readonly message?: StoredMessage;
  readonly config?: StreamConfig;
  /** When the stream was created. */
  readonly created?: string;
  readonly state?: { readonly messages: number; readonly subjects?: Readonly<Record<string, number>> };
  readonly cluster?: StreamCluster;
  /** Of a list that comes in pages. */
  readonly total?: number;
  /** The server's time; from NATS 2.10 on. */
  readonly ts?: string;
}

export interface StoredMessage {
  readonly seq: number;
  readonly time: string;
  /** Both in Base64, and absent when empty. */
  readonly data?: string;
  readonly hdrs?: string;
}

export interface StreamConfig {
  readonly max_msgs_per_subject: number;
  readonly storage: string;
  readonly num_replicas: number;
  /** In nanoseconds; 0 for ever. */
  readonly max_age: number;
  readonly subjects?: readonly string[];
  readonly deny_delete?: boolean;
  readonly sealed?: boolean;
  readonly retention?: string;
  readonly discard?: string;
  readonly discard_new_per_subject?: boolean;
  /** -1: as many as there are. */
  readonly max_msgs?: number;
  readonly max_bytes?: number;
}

export interface StreamCluster {
  readonly leader?: string;
  readonly replicas?: readonly {
    readonly name: string;
    readonly current: boolean;
    readonly offline?: boolean;
  }[];
}
