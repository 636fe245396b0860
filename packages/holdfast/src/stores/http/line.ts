/**
 * Requests to the services: one after the other is asked as they fail, answers are told from what is none, and what
 * stays without an answer is given up. No timer watches over that: it is looked at whenever something new is asked,
 * and the core asks again by itself.
 */
import { systemClock } from '../../clock.js';
import { UnsupportedError } from '../../protocol/index.js';
import type { RequestLike, ResponseLike } from './client.js';
import type { Checked } from './options.js';
import { Servers } from './servers.js';
import { errorOfStatus, noJson, notReached, problemIn } from './trouble.js';

/** Where there is another service: one that answers nothing for so long is left. */
const SILENCE_MS = 1_000;
/** An answer that takes longer than this is not awaited; the service itself answers within 5 s. */
const GIVE_UP_MS = 10_000;

interface Flight {
  readonly url: string;
  readonly sinceMs: number;
  readonly controller: AbortController;
  /** Its silence was held against its service already: once, so that the service is tried again in its turn. */
  isCounted: boolean;
}

export interface Stream {
  readonly url: string;
  readonly body: AsyncIterable<Uint8Array>;
}

export class Line {
  readonly servers: Servers;
  readonly #parts: Checked;
  /** The oldest first. */
  readonly #flights = new Set<Flight>();
  readonly #answeredMs = new Map<string, number>();
  #closed = false;

  constructor(parts: Checked, onLeft: (url: string) => void) {
    this.#parts = parts;
    this.servers = new Servers(parts.urls, onLeft);
  }

  checkOpen(): void {
    if (this.#closed) throw new UnsupportedError('This HTTP store is closed.');
  }

  /** The answer's JSON. Rejects with `UnsupportedError` where it was refused, else with a plain error. */
  async ask(path: string, body?: string): Promise<unknown> {
    this.checkOpen();
    this.#leaveSilent();
    const flight = this.#takeOff(new AbortController());
    try {
      const response = await this.#fetch(flight, path, 'application/json', body);
      const text = await this.#answer(flight, response.text());
      return bodyOf(flight.url, response, text);
    } finally {
      this.#flights.delete(flight);
    }
  }

  /** An answer that is read as it comes, until the signal; it is not in flight any more once it has begun. */
  async open(path: string, controller: AbortController): Promise<Stream> {
    this.checkOpen();
    const flight = this.#takeOff(controller);
    try {
      const response = await this.#fetch(flight, path, 'text/event-stream');
      const { status, headers } = response;
      if (
        status === 200 &&
        response.body &&
        /^text\/event-stream\b/.test(headers.get('content-type') ?? '')
      ) {
        return { url: flight.url, body: response.body };
      }
      const text = await this.#answer(flight, response.text());
      bodyOf(flight.url, response, text);
      throw noJson(flight.url, headers.get('content-type'), text);
    } finally {
      this.#flights.delete(flight);
    }
  }

  close(): void {
    this.#closed = true;
    for (const { controller } of this.#flights) {
      controller.abort(new Error('The store was closed before the service answered.'));
    }
  }

  #takeOff(controller: AbortController): Flight {
    const flight = {
      url: this.servers.current,
      sinceMs: systemClock.monotonicMs(),
      controller,
      isCounted: false,
    };
    this.#flights.add(flight);
    return flight;
  }

  async #fetch(flight: Flight, path: string, accept: string, body?: string): Promise<ResponseLike> {
    const { url, controller } = flight;
    const request: RequestLike = {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        'user-agent': 'holdfast',
        ...(await unlessAborted(controller.signal, this.#parts.headers())),
        accept,
        // What is compressed on its way is collected on its way.
        ...(accept === 'text/event-stream' && { 'accept-encoding': 'identity' }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body }),
      redirect: 'manual',
      signal: controller.signal,
    };
    controller.signal.throwIfAborted();
    const response = await this.#answer(flight, this.#parts.fetch(url + path, request));
    if (response.status >= 500 && response.status !== 501) this.servers.leave(url);
    return response;
  }

  async #answer<T>({ url, controller }: Flight, answer: Promise<T>): Promise<T> {
    try {
      const answered = await answer;
      this.#answeredMs.set(url, systemClock.monotonicMs());
      return answered;
    } catch (error) {
      // Given up by ourselves: the reason is known, and where it was the service's it has been left already.
      if (controller.signal.aborted) throw controller.signal.reason;
      this.servers.leave(url);
      throw notReached(url, error, this.#parts.urls.length > 1);
    }
  }

  #leaveSilent(): void {
    const nowMs = systemClock.monotonicMs();
    for (const flight of this.#flights) {
      const { url, sinceMs, controller } = flight;
      const waitedMs = nowMs - sinceMs;
      if (waitedMs < SILENCE_MS) return;
      const isSilent = (this.#answeredMs.get(url) ?? 0) < sinceMs;
      if (waitedMs >= GIVE_UP_MS && !controller.signal.aborted) {
        controller.abort(new Error(`The service at ${url} did not answer within ${GIVE_UP_MS / 1_000} s.`));
        if (isSilent) this.servers.giveUp(url);
      } else if (isSilent && !flight.isCounted) {
        flight.isCounted = true;
        this.servers.leave(url);
      }
    }
  }
}

/** What gives the token may hang as well as a service. */
function unlessAborted<T>(signal: AbortSignal, answer: Promise<T>): Promise<T> {
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  return Promise.race([answer, aborted]);
}

function bodyOf(url: string, { status, headers }: ResponseLike, text: string): unknown {
  const type = headers.get('content-type');
  const isJson = /^application\/(?:problem\+)?json\b/.test(type ?? '');
  if (status < 200 || status >= 300) {
    const problem = isJson ? problemIn(parsed(text)) : null;
    throw errorOfStatus({ url, status, location: headers.get('location'), text, problem });
  }
  if (!isJson) throw noJson(url, type, text);
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw noJson(url, 'JSON', text, error);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
