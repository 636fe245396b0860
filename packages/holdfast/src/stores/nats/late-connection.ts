/**
 * A connection to NATS that exists before the server does. The client's own `connect` fails when it finds no server; this
 * one tries until it has a connection, and then leaves reconnecting to the client. Requests fail meanwhile with the
 * reason, and may be sent again.
 */
import { systemClock } from '../../clock.js';
import { NotExecutedError } from '../../protocol/index.js';
import { notExecuted } from '../clients/errors.js';
import type { NatsConnection } from './connection.js';

/** The pause after a failed attempt, doubling. */
const CONNECT_AGAIN_MS = 50;
const CONNECT_AGAIN_MS_MAX = 1_000;

/** A connection of the client. */
export interface Closing extends NatsConnection {
  close(): Promise<void>;
}

export class LateConnection implements NatsConnection {
  /** Why there is no connection now; null while there is one. */
  error: unknown = null;
  readonly #connect: () => Promise<Closing>;
  #current: Closing | null = null;
  #ended = false;
  /** How often the client has tried to connect again since it was disconnected. */
  #reconnects = 0;
  /** Cuts the pause between two attempts short. */
  #wake: () => void = () => undefined;
  /** Settles when there is a connection, or when it ended without one. */
  #first: Promise<void> = Promise.resolve();

  private constructor(connect: () => Promise<Closing>) {
    this.#connect = connect;
  }

  /** Resolves after the first attempt, whether it succeeded or not. */
  static async open(connect: () => Promise<Closing>): Promise<LateConnection> {
    const late = new LateConnection(connect);
    if (!(await late.#tryToConnect())) late.#first = late.#persist();
    return late;
  }

  get info(): NatsConnection['info'] {
    return this.#current?.info;
  }

  get options(): NatsConnection['options'] {
    return this.#current?.options;
  }

  request(...args: Parameters<NatsConnection['request']>): ReturnType<NatsConnection['request']> {
    // The client would queue the request until it reconnects, and its outcome would be unknown meanwhile.
    return this.#current && !this.error ? this.#current.request(...args) : Promise.reject(this.#none());
  }

  publish(...args: Parameters<NatsConnection['publish']>): void {
    this.#connected().publish(...args);
  }

  subscribe(...args: Parameters<NatsConnection['subscribe']>): ReturnType<NatsConnection['subscribe']> {
    return this.#connected().subscribe(...args);
  }

  async flush(): Promise<void> {
    await this.#connected().flush();
  }

  async *status(): AsyncGenerator<{ readonly type: string }> {
    await this.#first;
    if (this.#current) yield* this.#current.status();
  }

  isClosed(): boolean {
    return this.#ended || this.#current?.isClosed() === true;
  }

  async end(): Promise<void> {
    this.#ended = true;
    this.#wake();
    await this.#first;
    await this.#current?.close();
  }

  async #persist(): Promise<void> {
    let pauseMs = CONNECT_AGAIN_MS;
    do {
      await this.#pause(pauseMs);
      pauseMs = Math.min(pauseMs * 2, CONNECT_AGAIN_MS_MAX);
    } while (!this.#ended && !(await this.#tryToConnect()));
  }

  async #tryToConnect(): Promise<boolean> {
    try {
      this.#current = await this.#connect();
      this.error = null;
      this.#watch(this.#current).catch((error: unknown) => {
        this.error = error;
      });
      return true;
    } catch (error) {
      this.error = error;
      return false;
    }
  }

  /** The client reports that it is disconnected, not why. */
  async #watch(connection: Closing): Promise<void> {
    for await (const { type } of connection.status()) {
      if (type === 'reconnecting') {
        this.#reconnects += 1;
      } else if (type === 'disconnect') {
        this.#reconnects = 0;
        this.error = Object.assign(new Error('reconnecting'), { code: 'ECONNRESET' });
      } else if (type === 'reconnect') {
        this.error = null;
      }
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = systemClock.timer(ms, resolve);
      this.#wake = () => {
        timer.cancel();
        resolve();
      };
      if (this.#ended) this.#wake();
    });
  }

  #connected(): Closing {
    if (!this.#current) throw this.#none();
    return this.#current;
  }

  /** Nothing was sent. The next attempt may succeed. */
  #none(): NotExecutedError {
    const message = this.error instanceof Error ? this.error.message : 'There is no connection to NATS yet.';
    const hasJustBroken = this.#current !== null && this.#reconnects < 2;
    const retry = notExecuted(this.error)?.retry ?? (hasJustBroken ? 'at-once' : 'while-waiting');
    return new NotExecutedError(message, retry, this.error ?? undefined);
  }
}
