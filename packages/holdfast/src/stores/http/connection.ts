/**
 * Requests to the services. One service is asked until it fails, then the next. A request without an answer is given
 * up, without a timer: its age is checked whenever something new is sent, and the core sends again by itself.
 */
import { systemClock } from '../../clock.js';
import { UnsupportedError } from '../../protocol/index.js';
import { type RequestLike, type ResponseLike, uniqueHeader } from '../clients/fetch.js';
import { errorOfStatus, notJson, notReached, problemIn } from './errors.js';
import type { CheckedOptions } from './options.js';

/** Where there is another service, one that answers nothing for this long is left. */
const SILENCE_MS = 1_000;
/** An answer is awaited this long; the service itself answers within 5 s. */
const GIVE_UP_MS = 10_000;

interface PendingRequest {
  readonly url: string;
  readonly sentMs: number;
  readonly controller: AbortController;
  /** Its silence has already moved the connection to the next service. Counted once, so that each gets its turn. */
  isCounted: boolean;
}

export class Connection {
  readonly #options: CheckedOptions;
  readonly #onServiceLeft: (url: string) => void;
  /** The oldest first. */
  readonly #pending = new Set<PendingRequest>();
  readonly #answeredMs = new Map<string, number>();
  #current = 0;
  #closed = false;

  /** `onServiceLeft` is called with a service that is no longer asked, or whose open streams are as good as gone. */
  constructor(options: CheckedOptions, onServiceLeft: (url: string) => void) {
    this.#options = options;
    this.#onServiceLeft = onServiceLeft;
  }

  /** The service that is asked now. */
  get url(): string {
    return this.#options.urls[this.#current] as string;
  }

  get serviceCount(): number {
    return this.#options.urls.length;
  }

  checkOpen(): void {
    if (this.#closed) throw new UnsupportedError('This HTTP store is closed.');
  }

  /** The JSON of the answer. Rejects with an `UnsupportedError` where the service refused, else with a plain error. */
  async request(path: string, body?: string): Promise<unknown> {
    this.checkOpen();
    this.#leaveSilent();
    const pending = this.#begin(new AbortController());
    try {
      const response = await this.#fetch(pending, path, 'application/json', body);
      const text = await this.#answer(pending, response.text());
      return bodyOf(pending.url, response, text);
    } finally {
      this.#pending.delete(pending);
    }
  }

  /** A stream of events, until the signal aborts. It is no longer pending once it has begun. */
  async open(path: string, controller: AbortController): Promise<AsyncIterable<Uint8Array>> {
    this.checkOpen();
    const pending = this.#begin(controller);
    try {
      const response = await this.#fetch(pending, path, 'text/event-stream');
      const { status, headers } = response;
      const type = headers.get('content-type');
      if (status === 200 && response.body && /^text\/event-stream\b/.test(type ?? '')) return response.body;
      const text = await this.#answer(pending, response.text());
      bodyOf(pending.url, response, text);
      throw notJson(pending.url, type, text);
    } finally {
      this.#pending.delete(pending);
    }
  }

  close(): void {
    this.#closed = true;
    for (const { controller } of this.#pending) {
      controller.abort(new Error('The store was closed before the service answered.'));
    }
  }

  #begin(controller: AbortController): PendingRequest {
    const pending = { url: this.url, sentMs: systemClock.monotonicMs(), controller, isCounted: false };
    this.#pending.add(pending);
    return pending;
  }

  async #fetch(pending: PendingRequest, path: string, accept: string, body?: string): Promise<ResponseLike> {
    const { url, controller } = pending;
    const request: RequestLike = {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        'user-agent': 'holdfast',
        ...uniqueHeader(),
        ...(await unlessAborted(controller.signal, this.#options.headers())),
        accept,
        // A proxy that compresses a stream holds its events back.
        ...(accept === 'text/event-stream' && { 'accept-encoding': 'identity' }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body }),
      redirect: 'manual',
      signal: controller.signal,
    };
    controller.signal.throwIfAborted();
    const response = await this.#answer(pending, this.#options.fetch(url + path, request));
    if (response.status >= 500 && response.status !== 501) this.#leave(url);
    return response;
  }

  async #answer<T>({ url, controller }: PendingRequest, answer: Promise<T>): Promise<T> {
    try {
      const answered = await answer;
      this.#answeredMs.set(url, systemClock.monotonicMs());
      return answered;
    } catch (error) {
      // Aborted by this class: the reason is known, and a silent service has been left already.
      if (controller.signal.aborted) throw controller.signal.reason;
      this.#leave(url);
      throw notReached(url, error, this.serviceCount > 1);
    }
  }

  #leaveSilent(): void {
    const nowMs = systemClock.monotonicMs();
    for (const pending of this.#pending) {
      const { url, sentMs, controller } = pending;
      const waitedMs = nowMs - sentMs;
      if (waitedMs < SILENCE_MS) return;
      const isSilent = (this.#answeredMs.get(url) ?? 0) < sentMs;
      if (waitedMs >= GIVE_UP_MS && !controller.signal.aborted) {
        controller.abort(new Error(`The service at ${url} did not answer within ${GIVE_UP_MS / 1_000} s.`));
        // With one service alone there is no other to ask, but its open streams are as good as gone.
        if (isSilent && !this.#leave(url)) this.#onServiceLeft(url);
      } else if (isSilent && !pending.isCounted) {
        pending.isCounted = true;
        this.#leave(url);
      }
    }
  }

  /** Moves on to the next service. False where there is none, or where another request moved on already. */
  #leave(url: string): boolean {
    if (this.serviceCount === 1 || url !== this.url) return false;
    this.#current = (this.#current + 1) % this.serviceCount;
    this.#onServiceLeft(url);
    return true;
  }
}

/** A function that returns the JWT may hang just as a service may. */
function unlessAborted<T>(signal: AbortSignal, answer: Promise<T>): Promise<T> {
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  return Promise.race([answer, aborted]);
}

/** The JSON of a success. Throws the error of any other response. */
function bodyOf(url: string, { status, headers }: ResponseLike, text: string): unknown {
  const type = headers.get('content-type');
  let body: unknown;
  let cause: unknown;
  try {
    if (/^application\/(?:problem\+)?json\b/.test(type ?? '')) body = JSON.parse(text);
  } catch (error) {
    cause = error;
  }
  if (status < 200 || status >= 300) {
    throw errorOfStatus({ url, status, location: headers.get('location'), text, problem: problemIn(body) });
  }
  if (body === undefined) throw notJson(url, type, text, cause);
  return body;
}
