/**
 * Receives wake-ups over HTTP: one stream per inbox. A lost stream costs only time, because waiters also poll. It is opened
 * again at once, at every server in turn; when all fail, a timer tries again.
 */
import { systemClock, type Timer } from '../../clock.js';
import { type Stop, UnsupportedError } from '../../protocol/index.js';
import type { OnListening, OnWake } from './wake-up.js';

/** One open stream of wake-ups, from the request to its end. */
export interface WakeStream {
  /** The server it comes from. */
  readonly url: string;
  /** Resolves when the server listens; rejects when it never will. */
  readonly ready: Promise<void>;
  /** Resolves with the reason, once the stream has ended. */
  readonly ended: Promise<unknown>;
  end(why: string): void;
}

export type OpenWakeStream = (inbox: string, onWake: OnWake, onListening: OnListening) => WakeStream;

/** The pause after a failed attempt, doubling. */
const OPEN_AGAIN_MS = 250;
const OPEN_AGAIN_MS_MAX = 5_000;
/** The pause after a refusal: such a server has no wake-ups until it is set up in another way. */
const REFUSED_MS = 60_000;

/** `open` opens a stream at the server that is asked now. */
export function wakeListeners(serverCount: number, open: OpenWakeStream) {
  const listeners = new Set<WakeListener>();

  function remove(listener: WakeListener): void {
    listeners.delete(listener);
    listener.stop();
  }

  return {
    /** Resolves when the server listens; rejects when that is not possible now. */
    async listen(inbox: string, onWake: OnWake, onListening: OnListening): Promise<Stop> {
      const listener = new WakeListener(serverCount, open, inbox, onWake, onListening);
      listeners.add(listener);
      try {
        await listener.begin();
      } catch (error) {
        remove(listener);
        throw error;
      }
      return async () => remove(listener);
    },
    /** Ends the streams of a server that no longer answers. */
    onServerLeft(url: string): void {
      for (const listener of listeners) listener.onServerLeft(url);
    },
    /** Why a listener receives nothing now; null when all receive. */
    error: (): unknown => [...listeners].find(({ error }) => error)?.error ?? null,
    close(): void {
      for (const listener of listeners) remove(listener);
    },
  };
}

class WakeListener {
  readonly #serverCount: number;
  readonly #connectStream: () => WakeStream;
  readonly #onListening: OnListening;
  #stream: WakeStream | null = null;
  #retry: Timer | null = null;
  #isListening = true;
  #failures = 0;
  #stopped = false;
  error: unknown = null;

  constructor(
    serverCount: number,
    open: OpenWakeStream,
    inbox: string,
    onWake: OnWake,
    onListening: OnListening,
  ) {
    this.#serverCount = serverCount;
    this.#onListening = onListening;
    this.#connectStream = () => open(inbox, onWake, (listening) => this.#setListening(listening));
  }

  /** A server without wake-ups is no failure: `onListening` is told. */
  async begin(): Promise<void> {
    try {
      await this.#connect();
    } catch (error) {
      if (!(error instanceof UnsupportedError) || this.#stopped) throw error;
      this.#onFailure(error);
      this.#retryLater();
    }
  }

  onServerLeft(url: string): void {
    if (this.#stream?.url === url) this.#stream.end(`The server at ${url} does not answer.`);
  }

  stop(): void {
    this.#stopped = true;
    this.#retry?.cancel();
    this.#stream?.end('The listener was stopped.');
  }

  async #connect(): Promise<void> {
    const stream = this.#connectStream();
    this.#stream = stream;
    try {
      await stream.ready;
    } catch (error) {
      this.#stream = null;
      throw error;
    }
    this.#failures = 0;
    this.error = null;
    void stream.ended.then((reason) => this.#onLost(reason));
  }

  #onLost(reason: unknown): void {
    this.#stream = null;
    if (this.#stopped) return;
    this.error = reason;
    this.#setListening(false);
    void this.#reconnect();
  }

  /** One attempt per server, since the one that failed may be the only one that is gone. */
  async #reconnect(): Promise<void> {
    for (let left = this.#serverCount; left > 0 && !this.#stopped; left -= 1) {
      try {
        await this.#connect();
        this.#setListening(true);
        return;
      } catch (error) {
        this.#onFailure(error);
      }
    }
    this.#retryLater();
  }

  #onFailure(error: unknown): void {
    this.error = error;
    this.#failures += 1;
    this.#setListening(false);
  }

  #retryLater(): void {
    if (this.#stopped) return;
    const isRefused = this.error instanceof UnsupportedError;
    const pauseMs = isRefused
      ? REFUSED_MS
      : Math.min(OPEN_AGAIN_MS * 2 ** (this.#failures - 1), OPEN_AGAIN_MS_MAX);
    this.#retry = systemClock.timer(pauseMs, () => void this.#reconnect());
    this.#retry.keepAlive(false);
  }

  #setListening(listening: boolean): void {
    if (listening === this.#isListening || this.#stopped) return;
    this.#isListening = listening;
    this.#onListening(listening);
  }
}
