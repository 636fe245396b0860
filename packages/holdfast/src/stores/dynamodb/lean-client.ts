/**
 * A client of DynamoDB with the calls that locks need and nothing else: a quarter to a third of the processor time of
 * the SDK's. It sends every call once, over connections that are kept open.
 */
import { Agent as HttpAgent, type IncomingHttpHeaders, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { systemClock } from '../../clock.js';
import type { DynamodbTableClient } from './client.js';
import { type Credentials, Signer } from './signature.js';

export interface LeanClientOptions {
  /** Asked until it is known. */
  readonly place: () => Promise<Place>;
  /** Asked before every call. */
  readonly credentials: () => Promise<Credentials>;
  /** How long an answer is awaited, and how many calls may be under way. */
  readonly requestMs: number;
  readonly connectionsMax: number;
}

/** Where to send, and the region to sign for. */
export interface Place {
  readonly endpoint: URL;
  readonly region: string;
}

/** What was found out about the place. */
interface Connection {
  readonly endpoint: URL;
  readonly signer: Signer;
  readonly agent: HttpAgent;
  readonly request: typeof requestHttp;
}

interface Answer {
  readonly response: { readonly statusCode: number; readonly headers: IncomingHttpHeaders };
  readonly body: string;
}

interface CallOptions {
  readonly abortSignal?: AbortSignal;
}

type Handler = (args: unknown) => Promise<Answer>;
type Middleware = (next: Handler) => Handler;

const CONTENT_TYPE = 'application/x-amz-json-1.0';
/** AWS refuses what was signed more than five minutes ago. A clock that is nearer to that than this is corrected. */
const SKEW_MS_MAX = 240_000;

export class LeanClient implements DynamodbTableClient {
  readonly #options: LeanClientOptions;
  #connection: Connection | null = null;
  #middleware: readonly Middleware[] = [];
  #skewMs = 0;
  #isClosed = false;
  /** As the SDK's: the last one added is the innermost. */
  readonly middlewareStack = {
    add: (middleware: never): void => {
      this.#middleware = [middleware, ...this.#middleware];
    },
  };

  constructor(options: LeanClientOptions) {
    this.#options = options;
  }

  getItem(input: never, options?: CallOptions): Promise<unknown> {
    return this.#call('GetItem', input, options);
  }

  updateItem(input: never, options?: CallOptions): Promise<unknown> {
    return this.#call('UpdateItem', input, options);
  }

  scan(input: never, options?: CallOptions): Promise<unknown> {
    return this.#call('Scan', input, options);
  }

  describeTable(input: never, options?: CallOptions): Promise<unknown> {
    return this.#call('DescribeTable', input, options);
  }

  describeTimeToLive(input: never, options?: CallOptions): Promise<unknown> {
    return this.#call('DescribeTimeToLive', input, options);
  }

  createTable(input: never, options?: CallOptions): Promise<unknown> {
    return this.#call('CreateTable', input, options);
  }

  updateTimeToLive(input: never, options?: CallOptions): Promise<unknown> {
    return this.#call('UpdateTimeToLive', input, options);
  }

  /** Ends all connections; calls that are under way fail, and later ones are refused. */
  destroy(): void {
    this.#isClosed = true;
    this.#connection?.agent.destroy();
  }

  async #call(operation: string, input: unknown, options: CallOptions = {}): Promise<unknown> {
    const body = JSON.stringify(input);
    const send: Handler = () => this.#send(operation, body, options.abortSignal);
    const handler = this.#middleware.reduce((next, middleware) => middleware(next), send);
    const { response, body: text } = await handler(input);
    this.#noteSkew(response.headers.date);
    if (response.statusCode === 200) return JSON.parse(text);
    throw serviceError(response.statusCode, text);
  }

  async #connect(): Promise<Connection> {
    const { endpoint, region } = await this.#options.place();
    const isHttps = endpoint.protocol === 'https:';
    const kept = { keepAlive: true, maxSockets: this.#options.connectionsMax };
    this.#connection ??= {
      endpoint,
      signer: new Signer(region, 'dynamodb'),
      agent: isHttps ? new HttpsAgent(kept) : new HttpAgent(kept),
      request: isHttps ? requestHttps : requestHttp,
    };
    return this.#connection;
  }

  async #send(operation: string, body: string, signal: AbortSignal | undefined): Promise<Answer> {
    const { endpoint, signer, agent, request } = this.#connection ?? (await this.#connect());
    const { host, port, protocol, pathname: path } = endpoint;
    // A URL has the address of IPv6 in brackets.
    const hostname = endpoint.hostname.replace(/^\[|\]$/g, '');
    const { requestMs } = this.#options;
    const target = `DynamoDB_20120810.${operation}`;
    const signed = { 'content-type': CONTENT_TYPE, host, 'x-amz-target': target };
    const credentials = await this.#options.credentials();
    signal?.throwIfAborted();
    if (this.#isClosed) throw new Error('This client of DynamoDB is closed.');
    const at = new Date(systemClock.wallMs() + this.#skewMs);
    const headers = signer.headersOf({ method: 'POST', path, headers: signed, body }, credentials, at);
    headers['content-length'] = String(Buffer.byteLength(body));
    const options = { agent, protocol, hostname, port, path, method: 'POST', headers };
    return new Promise((resolve, reject) => {
      const call = request({ ...options, timeout: requestMs, ...(signal && { signal }) }, (response) => {
        const { statusCode = 0, headers: received } = response;
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('error', reject);
        response.on('end', () => resolve({ response: { statusCode, headers: received }, body: text }));
      });
      call.on('error', reject);
      call.on('timeout', () => call.destroy(silentError(requestMs, call.socket)));
      call.end(body);
    });
  }

  /** Signs by the server's clock from the next call on, where this machine's is too far off. */
  #noteSkew(date: string | undefined): void {
    const skewMs = Date.parse(date ?? '') - systemClock.wallMs();
    if (Number.isNaN(skewMs)) return;
    this.#skewMs = Math.abs(skewMs) > SKEW_MS_MAX ? skewMs : 0;
  }
}

/** Without a connection nothing was sent. */
function silentError(requestMs: number, socket: Socket | TLSSocket | null): Error {
  const isConnected =
    socket !== null && !socket.connecting && !('secureConnecting' in socket && socket.secureConnecting);
  return Object.assign(new Error(`DynamoDB did not answer within ${requestMs / 1_000} s.`), {
    code: isConnected ? 'SILENT' : 'CONNECT_TIMEOUT',
  });
}

/** As the SDK has them: named by their type, with the item of a condition that failed. */
function serviceError(status: number, text: string): Error {
  const details = parsed(text);
  const { __type: type, message, Message, ...others } = details;
  const said = message ?? Message;
  const error = new Error(typeof said === 'string' ? said : `DynamoDB answered with status ${status}.`);
  const name = typeof type === 'string' ? type.slice(type.lastIndexOf('#') + 1) : 'UnknownError';
  return Object.assign(error, others, { name, $metadata: { httpStatusCode: status, attempts: 1 } });
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    const details: unknown = JSON.parse(text);
    return typeof details === 'object' && details !== null ? { ...details } : {};
  } catch (error) {
    // A proxy in between answers in its own words.
    return { cause: error };
  }
}
