/**
 * Calls of etcd's JSON gateway: several endpoints, login, time limits. A call that certainly was not executed goes to the
 * next endpoint at once; one without an answer is not repeated here, and the next call goes to the next endpoint.
 */
import { systemClock } from '../../clock.js';
import { NotExecutedError, UnsupportedError } from '../../protocol/index.js';
import { messageOf, notExecuted } from '../clients/errors.js';
import { type FetchLike, type ResponseLike, SECOND_MS, uniqueHeader } from '../clients/fetch.js';
import type { ClockReply } from '../compare-and-swap/server-clocks.js';

export interface GatewayOptions {
  readonly endpoints: readonly string[];
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  readonly fetch: FetchLike;
}

/** The members that are used of etcd's replies, of all kinds. Zeros, false and empty lists are left out; revisions are text. */
export interface Answer {
  readonly header?: { readonly revision?: string; readonly member_id?: string };
  readonly kvs?: readonly KeyValue[];
  readonly more?: boolean;
  readonly succeeded?: boolean;
  readonly responses?: readonly { readonly response_range?: Answer }[];
  readonly token?: string;
  readonly members?: readonly Member[];
  readonly [name: string]: unknown;
}

export interface KeyValue {
  readonly key: string;
  readonly value?: string;
  readonly mod_revision: string;
}

export interface Member {
  readonly ID: string;
  readonly name?: string;
  readonly clientURLs?: readonly string[];
  readonly isLearner?: boolean;
}

/** The answer of a known member with its time. */
export interface DatedAnswer {
  readonly answer: Answer;
  readonly time: ClockReply | null;
}

/** Numbers of gRPC. */
const CODE = {
  invalid: 3,
  notFound: 5,
  denied: 7,
  exhausted: 8,
  precondition: 9,
  unauthenticated: 16,
} as const;
/** A proxy in front of etcd was too slow, or has too much to do now. */
const MOMENTARY: readonly number[] = [408, 425, 429];
const AUTHENTICATE = '/v3/auth/authenticate';
/** After this time without an answer the outcome is unknown. Shorter where another endpoint can be asked. */
const CALL_MS_MAX_OF_ONE = 5_000;
const CALL_MS_MAX_OF_SEVERAL = 1_000;

/** etcd refused the call before it was executed. */
export class EtcdRefusal extends NotExecutedError {
  readonly grpcCode: number;

  constructor(url: string, code: number, message: string) {
    super(`etcd at ${url} refuses the call: ${message}`, 'while-waiting');
    this.grpcCode = code;
  }

  get isLeaseGone(): boolean {
    return this.grpcCode === CODE.notFound;
  }
}

export class Gateway {
  readonly endpoints: readonly string[];
  readonly #options: GatewayOptions;
  /** Called with the time of every reply. */
  readonly onReply = new Set<(reply: ClockReply) => void>();
  /** Called with an endpoint that failed: its open streams are as good as gone. */
  readonly onLeft = new Set<(url: string) => void>();
  /** Endpoints whose replies have headers that etcd does not send. */
  readonly proxied = new Set<string>();
  #current = 0;
  #login: Promise<string> | null = null;

  constructor(options: GatewayOptions) {
    this.endpoints = options.endpoints;
    this.#options = options;
  }

  /** The endpoint that is asked now. */
  get url(): string {
    return this.endpoints[this.#current] as string;
  }

  async call(path: string, body: object): Promise<Answer> {
    for (let left = this.endpoints.length; ; left--) {
      const { url } = this;
      try {
        return (await this.ask(url, path, body)).answer;
      } catch (error) {
        if (error instanceof EtcdRefusal || error instanceof UnsupportedError) throw error;
        this.#leave(url);
        if (left <= 1 || !(error instanceof NotExecutedError) || error.retry === 'never') throw error;
      }
    }
  }

  async ask(url: string, path: string, body: object): Promise<DatedAnswer> {
    const controller = new AbortController();
    const waitMs = this.endpoints.length > 1 ? CALL_MS_MAX_OF_SEVERAL : CALL_MS_MAX_OF_ONE;
    const timer = systemClock.timer(waitMs, () => {
      controller.abort(new Error(`etcd at ${url} did not answer within ${waitMs} ms and is silent`));
    });
    timer.keepAlive(false);
    try {
      return await this.#withLogin(url, path, async () => {
        const sentMs = systemClock.monotonicMs();
        const response = await this.#fetch(url, path, body, controller.signal);
        const answer = answerIn(url, response.status, await response.text());
        if (response.headers.get('server') ?? response.headers.get('via')) this.proxied.add(url);
        const time = timeIn(response, answer, sentMs);
        if (time) for (const note of this.onReply) note(time);
        return { answer, time };
      });
    } catch (error) {
      throw explained(url, error, controller.signal);
    } finally {
      timer.cancel();
    }
  }

  /** The JSON values of a stream, until the signal aborts. */
  async stream(
    url: string,
    path: string,
    body: object,
    signal: AbortSignal,
  ): Promise<AsyncIterable<Uint8Array>> {
    try {
      return await this.#withLogin(url, path, async () => {
        const response = await this.#fetch(url, path, body, signal);
        if (response.status === 200 && response.body) return response.body;
        answerIn(url, response.status, await response.text());
        throw new Error(`etcd at ${url} opened no stream.`);
      });
    } catch (error) {
      throw explained(url, error, signal);
    }
  }

  async #fetch(url: string, path: string, body: object, signal: AbortSignal): Promise<ResponseLike> {
    const login = path === AUTHENTICATE ? null : await this.#login;
    const headers = {
      ...uniqueHeader(),
      'content-type': 'application/json',
      ...(login && { authorization: login }),
    };
    const request = {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
      redirect: 'manual',
      signal,
    } as const;
    return await this.#options.fetch(url + path, request);
  }

  /** Logs in where that is needed, and again where the login has expired: once per call. */
  async #withLogin<T>(url: string, path: string, run: () => Promise<T>): Promise<T> {
    const { user } = this.#options;
    if (user === undefined || path === AUTHENTICATE) return await run();
    const login = this.#logIn(url);
    await login;
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof EtcdRefusal) || error.grpcCode !== CODE.unauthenticated) throw error;
      if (this.#login === login) this.#login = null;
      await this.#logIn(url);
      return await run();
    }
  }

  #logIn(url: string): Promise<string> {
    if (this.#login) return this.#login;
    const { user: name, password } = this.#options;
    const login = this.ask(url, AUTHENTICATE, { name, password }).then(
      ({ answer }) => answer.token ?? '',
      (error: unknown) => {
        if (this.#login === login) this.#login = null;
        // A server without users accepts every call.
        if (error instanceof EtcdRefusal && error.grpcCode === CODE.precondition) return '';
        throw error;
      },
    );
    this.#login = login;
    return login;
  }

  #leave(url: string): void {
    if (url === this.url) this.#current = (this.#current + 1) % this.endpoints.length;
    for (const leave of this.onLeft) leave(url);
  }
}

function timeIn(response: ResponseLike, { header }: Answer, sentMs: number): ClockReply | null {
  const from = Date.parse(response.headers.get('date') ?? '');
  if (header?.member_id === undefined || Number.isNaN(from)) return null;
  const receivedMs = systemClock.monotonicMs();
  return { server: header.member_id, sentMs, receivedMs, from, until: from + SECOND_MS };
}

/** The JSON of a success. Throws the error of any other response. */
function answerIn(url: string, status: number, text: string): Answer {
  const isJson = text.startsWith('{');
  if (!isJson && status >= 200 && status < 500 && !MOMENTARY.includes(status)) {
    throw new UnsupportedError(
      `There is no JSON gateway of etcd at ${url} (status ${status}). etcd 3.4 or later has it on its client port.`,
    );
  }
  const answer = isJson ? (JSON.parse(text) as Answer & { code?: number; message?: string }) : {};
  if (status === 200) return answer;
  const { code = 0, message = `status ${status}` } = answer;
  if (code === CODE.unauthenticated || /auth token|auth store is old/.test(message)) {
    throw new EtcdRefusal(url, CODE.unauthenticated, message);
  }
  if (/not supported for learner/.test(message)) {
    throw new NotExecutedError(
      `etcd at ${url} is a learner, which has no vote and answers no calls yet: promote it, or name other members`,
      'while-waiting',
    );
  }
  if (/database space exceeded/.test(message)) {
    // A transaction may be applied before the quota is noticed.
    throw new Error(
      `etcd at ${url} is out of space (${message}): compact and defragment it, then run "etcdctl alarm disarm".`,
    );
  }
  const isBusy = code === CODE.exhausted && /too many requests/.test(message);
  if (code === CODE.notFound || code === CODE.precondition || isBusy) {
    throw new EtcdRefusal(url, code, message);
  }
  if (code === CODE.invalid && /authentication failed|user name is empty/.test(message)) {
    throw new NotExecutedError(
      `etcd at ${url} refuses this user name and password: check them (${message})`,
      'never',
    );
  }
  if (code === CODE.denied || code === CODE.invalid) {
    throw new UnsupportedError(
      `etcd at ${url} refuses the call: ${message}. A user of locks reads and writes the keys below the store's prefix.`,
    );
  }
  throw new Error(`etcd at ${url} did not execute the call, or only perhaps: ${message}.`);
}

function explained(url: string, error: unknown, signal: AbortSignal): unknown {
  if (error instanceof NotExecutedError || error instanceof UnsupportedError) return error;
  const why = signal.aborted ? signal.reason : error;
  return notExecuted(why) ?? new Error(`etcd at ${url}: ${messageOf(why)}`, { cause: why });
}
