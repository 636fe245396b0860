/**
 * Wake-ups over core NATS: one subject per inbox, below the bucket's name. Nothing is stored: while the connection is
 * lost nothing arrives, the listeners are told so, and waiters poll.
 */
import { type Stop, UnsupportedError, type Wake } from '../../protocol/index.js';
import { messageOf } from '../clients/errors.js';
import { deliverWake, type OnListening, type OnWake } from '../clients/wake-up.js';
import type { Bucket } from './bucket.js';
import { type NatsConnection, type NatsSubscription, textOf } from './connection.js';
import { tokenOf } from './keys.js';

type Statuses = AsyncIterable<{ readonly type: string }> & { stop?: () => void };

interface Listener {
  readonly subscription: NatsSubscription;
  readonly onListening: OnListening;
}

/** The beginning of the subjects of all wake-ups of a bucket. */
export function wakeSubjectPrefix(bucket: string): string {
  return `_HOLDFAST.${bucket}.`;
}

export class WakeListener {
  readonly #connection: NatsConnection;
  readonly #prefix: string;
  readonly #onDisconnect: () => void;
  readonly #listeners = new Set<Listener>();
  #statuses: Statuses | null = null;
  #closed = false;
  /** The last error that no caller was told; undefined for none. */
  error: unknown;

  /** `onDisconnect`: the connection broke, and the next one may be to another server. */
  constructor({ connection, name }: Bucket, onDisconnect: () => void) {
    this.#connection = connection;
    this.#prefix = wakeSubjectPrefix(name);
    this.#onDisconnect = onDisconnect;
  }

  /** Never throws, never waits: a wake-up that cannot be sent is a lost wake-up. */
  send(key: string, wakes: readonly Wake[]): void {
    for (const { inbox, why } of wakes) {
      try {
        this.#connection.publish(`${this.#prefix}${tokenOf(inbox)}`, `${why}:${key}`);
      } catch (error) {
        this.error = error;
      }
    }
  }

  /** Resolves when the server knows the subscription; rejects when it refuses it. */
  async listen(inbox: string, onWake: OnWake, onListening: OnListening): Promise<Stop> {
    let refused: Error | null = null;
    const subject = `${this.#prefix}${tokenOf(inbox)}`;
    const subscription = this.#connection.subscribe(subject, {
      callback: (error, { data }) => {
        if (!error) return deliverWake(textOf(data), ':', onWake);
        refused = error;
        this.error = error;
        onListening(false);
      },
    });
    const listener = { subscription, onListening };
    this.#listeners.add(listener);
    this.watch();
    try {
      await this.#connection.flush();
      if (refused) {
        throw new UnsupportedError(
          `The user of this connection may not receive wake-ups (${messageOf(refused)}). Allow it to subscribe and publish to "${this.#prefix}>".`,
          { cause: refused },
        );
      }
    } catch (error) {
      this.#remove(listener);
      throw error;
    }
    return async () => this.#remove(listener);
  }

  close(): void {
    this.#closed = true;
    for (const listener of this.#listeners) this.#remove(listener);
    this.#statuses?.stop?.();
  }

  #remove(listener: Listener): void {
    if (!this.#listeners.delete(listener) || this.#connection.isClosed()) return;
    listener.subscription.unsubscribe();
  }

  /** Follows the state of the connection, from now on. */
  watch(): void {
    if (this.#statuses || this.#closed) return;
    this.#statuses = this.#connection.status();
    this.#follow(this.#statuses).catch((error: unknown) => {
      this.error = error;
      this.#setListening(false);
    });
  }

  /** The client subscribes again before it reports 'reconnect'. */
  async #follow(statuses: Statuses): Promise<void> {
    for await (const { type } of statuses) {
      if (this.#closed) return;
      if (type === 'disconnect' || type === 'close') {
        this.#onDisconnect();
        this.#setListening(false);
      }
      if (type === 'reconnect') this.#setListening(true);
    }
    this.#setListening(false);
  }

  #setListening(listening: boolean): void {
    for (const { onListening } of this.#listeners) onListening(listening);
  }
}
