/**
 * A connection to NATS that exists before the server does. The client's own `connect` fails when it finds no server; this
 * one tries until it has a connection, and then leaves reconnecting to the client. Requests fail meanwhile with the
 * reason, and may be sent again.
 */
import { systemClock } from '../../clock.js';
import { NotExecutedError } from '../../protocol/index.js';
import { notExecuted } from '../clients/errors.js';
import type { NatsConnection } from './index.js';

const RETRY_MS_MIN = 50;
const RETRY_MS_MAX = 1_000;

/** A connection of the client. */
export interface Closing extends NatsConnection {
  close(): Promise<void>;
}

export class LateConnection implements NatsConnection {
  readonly #connect: () => Promise<Closing>;
  #current: Closing | null = null;
  #error: unknown = null;
  #ended = false;
  /** How often the client has tried to connect again since it was disconnected. */
  #reconnects = 0;
  /** Cuts the pause between two attempts short. */
  #wake: () => void = () => undefined;
  /** Settles with the connection, or with null when it ended without one. */
  readonly #first: Promise<Closing | null>;

  private constructor(connect: () => Promise<Closing>, tried: () => void) {
    this.#connect = connect;
    this.#first = this.#persist(tried);
  }

  /** Resolves after the first attempt, whether it succeeded or not. */
  static async open(connect: () => Promise<Closing>): Promise<LateConnection> {
    let late: LateConnection | undefined;
    await new Promise<void>((resolve) => {
      late = new LateConnection(connect, resolve);
    });
    return late as LateConnection;
  }

  /** Why there is no connection now; null while there is one. */
  get error(): unknown {
    return this.#error;
  }

  get info(): NatsConnection['info'] {
    return this.#current?.info;
  }

  get options(): NatsConnection['options'] {
    return this.#current?.options;
  }

  request(...args: Parameters<NatsConnection['request']>): ReturnType<NatsConnection['request']> {
    // The client would queue the request until it reconnects, and its outcome would be unknown meanwhile.
    return this.#current && !this.#error ? this.#current.request(...args) : Promise.reject(this.#none());
  }

  publish(...args: Parameters<NatsConnection['publish']>): void {
    if (!this.#current) throw this.#none();
    this.#current.publish(...args);
  }

  subscribe(...args: Parameters<NatsConnection['subscribe']>): ReturnType<NatsConnection['subscribe']> {
    if (!this.#current) throw this.#none();
    return this.#current.subscribe(...args);
  }

  flush(): Promise<void> {
    return this.#current ? this.#current.flush() : Promise.reject(this.#none());
  }

  async *status(): AsyncGenerator<{ readonly type: string }> {
    const connection = await this.#first;
    if (connection) yield* connection.status();
  }

  isClosed(): boolean {
    return this.#ended || this.#current?.isClosed() === true;
  }

  async end(): Promise<void> {
    this.#ended = true;
    this.#wake();
    await (await this.#first)?.close();
  }

  async #persist(tried: () => void): Promise<Closing | null> {
    for (let attempts = 0; !this.#ended; attempts += 1) {
      try {
        const connection = await this.#connect();
        this.#current = connection;
        this.#error = null;
        this.#watch(connection).catch((error: unknown) => {
          this.#error = error;
        });
        tried();
        return connection;
      } catch (error) {
        this.#error = error;
        tried();
        await this.#pause(Math.min(RETRY_MS_MIN * 2 ** Math.min(attempts, 10), RETRY_MS_MAX));
      }
    }
    return null;
  }

  /** The client reports that it is disconnected, not why. */
  async #watch(connection: Closing): Promise<void> {
    for await (const { type } of connection.status()) {
      if (type === 'reconnecting') {
        this.#reconnects += 1;
      } else if (type === 'disconnect') {
        this.#reconnects = 0;
        this.#error = Object.assign(new Error('reconnecting'), { code: 'ECONNRESET' });
      } else if (type === 'reconnect') {
        this.#error = null;
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

  /** Nothing was sent. The next attempt may succeed. */
  #none(): NotExecutedError {
    const { message } =
      this.#error instanceof Error ? this.#error : new Error('There is no connection to NATS yet.');
    const hasJustBroken = this.#current !== null && this.#reconnects < 2;
    const retry = notExecuted(this.#error)?.retry ?? (hasJustBroken ? 'at-once' : 'while-waiting');
    return new NotExecutedError(message, retry, this.#error ?? undefined);
  }
}
