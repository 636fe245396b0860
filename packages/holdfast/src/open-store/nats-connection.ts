/**
 * A connection to NATS that is there from the beginning, whether the server is or not. The client's own `connect` fails
 * when it finds none; this one tries again until it has one, and from then on leaves reconnecting to the client. What is
 * asked meanwhile fails with the reason, and may be asked again.
 */
import { systemClock } from '../clock.js';
import { NotExecutedError } from '../protocol/index.js';
import { notExecuted } from '../stores/clients/errors.js';
import type { NatsConnection } from '../stores/nats/index.js';

const RETRY_MS_MIN = 50;
const RETRY_MS_MAX = 1_000;

/** What a client's connection has beyond what a store uses. */
export interface Closing extends NatsConnection {
  close(): Promise<void>;
}

export class LateConnection implements NatsConnection {
  readonly #connect: () => Promise<Closing>;
  #current: Closing | null = null;
  #trouble: unknown = null;
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

  /** There once the first attempt is over, however it went. */
  static async open(connect: () => Promise<Closing>): Promise<LateConnection> {
    let late: LateConnection | undefined;
    await new Promise<void>((resolve) => {
      late = new LateConnection(connect, resolve);
    });
    return late as LateConnection;
  }

  /** Why there is no connection now; null while there is one. */
  get trouble(): unknown {
    return this.#trouble;
  }

  get info(): NatsConnection['info'] {
    return this.#current?.info;
  }

  get options(): NatsConnection['options'] {
    return this.#current?.options;
  }

  request(...args: Parameters<NatsConnection['request']>): ReturnType<NatsConnection['request']> {
    // The client would keep it until it is connected again, and nobody could say meanwhile whether it will be executed.
    return this.#current && !this.#trouble ? this.#current.request(...args) : Promise.reject(this.#none());
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
        this.#trouble = null;
        this.#watch(connection).catch((error: unknown) => {
          this.#trouble = error;
        });
        tried();
        return connection;
      } catch (error) {
        this.#trouble = error;
        tried();
        await this.#pause(Math.min(RETRY_MS_MIN * 2 ** Math.min(attempts, 10), RETRY_MS_MAX));
      }
    }
    return null;
  }

  /** The client does not say why it is disconnected, only that it is. */
  async #watch(connection: Closing): Promise<void> {
    for await (const { type } of connection.status()) {
      if (type === 'reconnecting') {
        this.#reconnects += 1;
      } else if (type === 'disconnect') {
        this.#reconnects = 0;
        this.#trouble = Object.assign(new Error('it is made anew as soon as can be'), { code: 'ECONNRESET' });
      } else if (type === 'reconnect') {
        this.#trouble = null;
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

  /** Nothing was sent. The server may be there, and let this user in, at the next attempt. */
  #none(): NotExecutedError {
    const { message } =
      this.#trouble instanceof Error ? this.#trouble : new Error('There is no connection to NATS yet.');
    const hasJustBroken = this.#current !== null && this.#reconnects < 2;
    const retry = notExecuted(this.#trouble)?.retry ?? (hasJustBroken ? 'at-once' : 'while-waiting');
    return new NotExecutedError(message, retry, this.#trouble ?? undefined);
  }
}
