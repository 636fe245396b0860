/** One open stream of wake-ups, from the request to its end. */
import { systemClock, type Timer } from '../../clock.js';
import { isWhy, type OnListening, type OnWake } from '../clients/wake-up.js';
import type { Connection } from './connection.js';
import { EventStream, type ServerEvent } from './event-stream.js';

/** The service reports within this time that it listens. */
const READY_MS_MAX = 10_000;
/** The service sends something every 15 s. A connection that is silent three times as long is gone. */
const SILENCE_MS_MAX = 45_000;

export class WakeStream {
  /** The service it comes from. */
  readonly url: string;
  /** Resolves when the service listens; rejects when it never will. */
  readonly ready: Promise<void>;
  /** Resolves with the reason, once the stream has ended. */
  readonly ended: Promise<unknown>;
  readonly #controller = new AbortController();
  readonly #onWake: OnWake;
  /** Called when the service's own store stops receiving wake-ups, and when it does again. */
  readonly #onListening: OnListening;
  #receivedMs = systemClock.monotonicMs();
  #isReady = false;
  #onReady: () => void = () => undefined;
  #silenceTimer: Timer | null = null;

  constructor(connection: Connection, inbox: string, onWake: OnWake, onListening: OnListening) {
    this.#onWake = onWake;
    this.#onListening = onListening;
    this.url = connection.url;
    const ready = new Promise<void>((resolve) => {
      this.#onReady = resolve;
    });
    const reading = this.#read(connection, inbox);
    this.ended = reading.catch((error: unknown) => error);
    this.ready = Promise.race([ready, reading]);
  }

  end(why: string): void {
    this.#controller.abort(new Error(why));
  }

  async #read(connection: Connection, inbox: string): Promise<never> {
    const { signal } = this.#controller;
    try {
      this.#watchSilence();
      const path = `/v2/inboxes/${encodeURIComponent(inbox)}/events`;
      const events = new EventStream();
      for await (const bytes of await connection.open(path, this.#controller)) {
        // Nothing is delivered after `end`, even if it had been received before.
        signal.throwIfAborted();
        this.#receivedMs = systemClock.monotonicMs();
        for (const event of events.push(bytes)) this.#take(event);
      }
    } finally {
      this.#silenceTimer?.cancel();
      // Also where reading failed: the connection is of no further use.
      this.#controller.abort();
    }
    throw new Error('The service ended the stream of wake-ups.');
  }

  #watchSilence(): void {
    const untilMs = this.#receivedMs + (this.#isReady ? SILENCE_MS_MAX : READY_MS_MAX);
    const leftMs = untilMs - systemClock.monotonicMs();
    if (leftMs <= 0) {
      this.end('The stream of wake-ups fell silent.');
      return;
    }
    this.#silenceTimer = systemClock.timer(leftMs, () => this.#watchSilence());
    this.#silenceTimer.keepAlive(false);
  }

  #take({ event, data }: ServerEvent): void {
    switch (event) {
      case 'ready':
        this.#isReady = true;
        this.#onReady();
        return;
      case 'wake': {
        const { key, why } = JSON.parse(data) as { readonly key?: unknown; readonly why?: unknown };
        if (typeof key !== 'string' || !isWhy(why)) return;
        if (!this.#controller.signal.aborted) this.#onWake(key, why);
        return;
      }
      case 'hears':
        this.#onListening((JSON.parse(data) as { readonly hearing?: unknown }).hearing === true);
        return;
      case 'trouble':
        throw new Error('The service cannot listen to its store now.');
      default:
    }
  }
}
