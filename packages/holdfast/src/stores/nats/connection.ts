/**
 * What is used of a connection, and how JetStream is spoken to over it: plain requests with JSON. Nothing of a client
 * is imported: headers are the one thing that a client makes objects of, and all it does with those is `encode()`.
 */
import { InvalidArgumentError } from '../../protocol/index.js';
import { type ApiError, JetStreamError, withoutAnswer } from './trouble.js';

export interface NatsMessage {
  readonly subject: string;
  readonly data: Uint8Array;
}

export interface NatsSubscription {
  unsubscribe(): void;
}

/** A connection of @nats-io/transport-node 3: what its `connect` gives. */
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

export interface ServerInfo {
  readonly version: string;
  readonly jetstream?: boolean;
  readonly cluster?: string;
}

const METHODS = ['request', 'publish', 'subscribe', 'flush', 'status', 'isClosed'] as const;

export function checkConnection(connection: unknown): NatsConnection {
  const given = connection as Partial<Record<string, unknown>> | null | undefined;
  if (typeof given === 'object' && given && METHODS.every((name) => typeof given[name] === 'function')) {
    return connection as NatsConnection;
  }
  throw new InvalidArgumentError(
    'The connection is no connection to NATS. Give it what `await connect({ servers })` of @nats-io/transport-node ' +
      'returns; a URL, a JetStream client or a promise of a connection is none.',
  );
}

/** A request unanswered for so long is unknown. The core asks again much sooner. */
export const ANSWER_MS_MAX = 2_000;

/** Asks JetStream. Rejects with a `JetStreamError` for what it refuses. */
export async function askApi(
  connection: NatsConnection,
  subject: string,
  question?: object,
): Promise<ApiAnswer> {
  const payload = question === undefined ? '' : JSON.stringify(question);
  const named = `$JS.API.${subject}`;
  return answerIn(await answered(connection, named, payload, { timeout: ANSWER_MS_MAX }), named);
}

/** The bytes of the answer, or in words why there is none. */
export async function answered(
  connection: NatsConnection,
  subject: string,
  payload: string,
  options: { readonly timeout: number; readonly headers?: unknown },
): Promise<Uint8Array> {
  try {
    return (await connection.request(subject, payload, options)).data;
  } catch (error) {
    throw withoutAnswer(error, subject, connection);
  }
}

/** Throws a `JetStreamError` for a refusal. */
export function answerIn(data: Uint8Array, subject: string): ApiAnswer {
  const answer = JSON.parse(textOf(data)) as ApiAnswer;
  if (answer.error) throw new JetStreamError(answer.error, subject);
  return answer;
}

export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

/** The members of JetStream's answers that are used, of all its kinds of answers. */
export interface ApiAnswer {
  readonly error?: ApiError;
  /** Of a message that was stored. */
  readonly stream?: string;
  readonly seq?: number;
  /** A message of the same id was stored before; this one was not. */
  readonly duplicate?: boolean;
  readonly message?: StoredMessage;
  readonly config?: StreamConfig;
  /** When the stream was made. */
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
}

export interface StreamCluster {
  readonly leader?: string;
  readonly replicas?: readonly {
    readonly name: string;
    readonly current: boolean;
    readonly offline?: boolean;
  }[];
}
