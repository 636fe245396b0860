/**
 * Hints over core NATS: one subject an inbox, under the bucket's name. Nothing is stored: while the connection is away,
 * nothing is heard, the listeners are told so, and every waiter asks by itself.
 */
import { type Stop, UnsupportedError, type Wake, type Why } from '../../protocol/index.js';
import { deliverWake } from '../clients/wake-up.js';
import { type NatsConnection, type NatsSubscription, textOf } from './connection.js';
import { tokenOf } from './keys.js';
import { wordsOf } from './trouble.js';

type Listener = (key: string, why: Why) => void;
type Hears = (hearing: boolean) => void;

/** What hints are published under. */
export function hintsBegin(bucket: string): string {
  return `_HOLDFAST.${bucket}.`;
}

export class Hints {
  readonly #connection: NatsConnection;
  readonly #begin: string;
  readonly #ears = new Set<{ readonly subscription: NatsSubscription; readonly hears: Hears }>();
  #statuses: (AsyncIterable<{ readonly type: string }> & { stop?: () => void }) | null = null;
  #trouble: unknown;
  #closed = false;
  readonly #onGap: () => void;

  /** `onGap`: the connection broke, and nobody knows what the server is that it finds next. */
  constructor(connection: NatsConnection, bucket: string, onGap: () => void = () => undefined) {
    this.#connection = connection;
    this.#onGap = onGap;
    this.#begin = hintsBegin(bucket);
  }

  /** What went wrong last without anybody being told. */
  get trouble(): unknown {
    return this.#trouble;
  }

  /** Never throws, never waits: a hint that cannot be sent is a hint that is lost. */
  wake(key: string, wakes: readonly Wake[]): void {
    for (const { inbox, why } of wakes) {
      try {
        this.#connection.publish(`${this.#begin}${tokenOf(inbox)}`, `${why}:${key}`);
      } catch (error) {
        this.#trouble = error;
      }
    }
  }

  /** Resolves when the server knows of it; rejects when it cannot be heard now. */
  async listen(inbox: string, listener: Listener, hears: Hears): Promise<Stop> {
    let refused: Error | null = null;
    const subject = `${this.#begin}${tokenOf(inbox)}`;
    const subscription = this.#connection.subscribe(subject, {
      callback: (error, { data }) => {
        if (!error) return deliverWake(textOf(data), '', listener);
        refused = error;
        this.#trouble = error;
        hears(false);
      },
    });
    const ear = { subscription, hears };
    this.#ears.add(ear);
    this.watch();
    try {
      await this.#connection.flush();
      if (refused) throw deafness(refused, this.#begin);
    } catch (error) {
      this.#drop(ear);
      throw error;
    }
    return async () => this.#drop(ear);
  }

  close(): void {
    this.#closed = true;
    for (const ear of this.#ears) this.#drop(ear);
    this.#statuses?.stop?.();
  }

  #drop(ear: { readonly subscription: NatsSubscription; readonly hears: Hears }): void {
    if (!this.#ears.delete(ear) || this.#connection.isClosed()) return;
    ear.subscription.unsubscribe();
  }

  /** Follows what happens to the connection, from now on. */
  watch(): void {
    if (this.#statuses || this.#closed) return;
    this.#statuses = this.#connection.status();
    this.#follow(this.#statuses).catch((error: unknown) => {
      this.#trouble = error;
      this.#tell(false);
    });
  }

  /** The client subscribes anew by itself before it says that it is back. */
  async #follow(statuses: AsyncIterable<{ readonly type: string }>): Promise<void> {
    for await (const { type } of statuses) {
      if (this.#closed) return;
      if (type === 'disconnect' || type === 'close') {
        this.#onGap();
        this.#tell(false);
      }
      if (type === 'reconnect') this.#tell(true);
    }
    this.#tell(false);
  }

  #tell(hearing: boolean): void {
    for (const { hears } of this.#ears) hears(hearing);
  }
}

function deafness(error: Error, begin: string): UnsupportedError {
  return new UnsupportedError(
    `The user of this connection may not hear hints (${wordsOf(error)}). Allow it to subscribe and publish to "${begin}>".`,
    { cause: error },
  );
}
