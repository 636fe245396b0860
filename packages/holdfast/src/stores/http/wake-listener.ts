/**
 * Receives wake-ups: one stream per inbox. A lost stream costs only time, because waiters also poll. It is opened again
 * at once, at every service in turn; when all fail, a timer tries again.
 */
import { systemClock, type Timer } from '../../clock.js';
import { type Stop, UnsupportedError } from '../../protocol/index.js';
import type { OnListening, OnWake } from '../clients/wake-up.js';
import type { Connection } from './connection.js';
import { type WakeStream, wakeStream } from './wake-stream.js';

/** The pause after a failed attempt, doubling. */
const OPEN_AGAIN_MS = 250;
const OPEN_AGAIN_MS_MAX = 5_000;
/** The pause after a refusal: the service has no wake-ups until it gets another store. */
const REFUSED_MS = 60_000;

export function wakeListeners(connection: Connection) {
  const listeners = new Set<WakeListener>();

  function remove(listener: WakeListener): void {
    listeners.delete(listener);
    listener.stop();
  }

  return {
    /** Resolves when the service listens; rejects when that is not possible now. */
    async listen(inbox: string, onWake: OnWake, onListening: OnListening): Promise<Stop> {
      const listener = new WakeListener(connection, inbox, onWake, onListening);
      listeners.add(listener);
      try {
        await listener.begin();
      } catch (error) {
        remove(listener);
        throw error;
      }
      return async () => remove(listener);
    },
    /** Ends the streams of a service that no longer answers. */
    onServiceLeft(url: string): void {
      for (const listener of listeners) listener.onServiceLeft(url);
    },
    /** Why a listener receives nothing now; null when all receive. */
    error: (): unknown => [...listeners].find(({ error }) => error)?.error ?? null,
    close(): void {
      for (const listener of listeners) remove(listener);
    },
  };
}

class WakeListener {
  readonly #connection: Connection;
  readonly #connectStream: () => WakeStream;
  readonly #onListening: OnListening;
  #stream: WakeStream | null = null;
  #retry: Timer | null = null;
  #isListening = true;
  #failures = 0;
  #stopped = false;
  error: unknown = null;

  constructor(connection: Connection, inbox: string, onWake: OnWake, onListening: OnListening) {
    this.#connection = connection;
    this.#onListening = onListening;
    this.#connectStream = () =>
      wakeStream(connection, inbox, onWake, (listening) => this.#setListening(listening));
  }

  /** A store without wake-ups behind the service is no failure: `onListening` is told. */
  async begin(): Promise<void> {
    try {
      await this.#connect();
    } catch (error) {
      if (!(error instanceof UnsupportedError) || this.#stopped) throw error;
      this.#onFailure(error);
      this.#retryLater();
    }
  }

  onServiceLeft(url: string): void {
    if (this.#stream?.url === url) this.#stream.end(`The service at ${url} does not answer.`);
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

  /** One attempt per service, since the one that failed may be the only one that is gone. */
  async #reconnect(): Promise<void> {
    for (let left = this.#connection.serviceCount; left > 0 && !this.#stopped; left -= 1) {
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
