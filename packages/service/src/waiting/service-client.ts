/** The store client of the service. Its errors go to clients of the service, so they do not repeat the driver's words. */
import { type HoldfastError, type Store, StoreError } from 'holdfast';
import { systemClock } from 'holdfast/clock';
import { StoreClient } from 'holdfast/engine';
import {
  type Command,
  type Granted,
  type Guarantees,
  type ListQuery,
  listAround,
  type Renewed,
  type Reply,
  type Snapshot,
} from 'holdfast/protocol';
import { monotonicMs, soon, within } from '../clock.js';
import type { ServiceEvents } from '../service-events.js';
import { measured, type OnReply, observedStore } from './observed-store.js';

/** After listing for this long, other work gets a turn. */
const LISTING_MS_MAX = 2;

export class ServiceClient extends StoreClient {
  /** A client of the service waits for its answer anyway, so a short outage of the store is not a failure. */
  protected override readonly asksWhileAway = true;
  readonly #events: ServiceEvents;

  constructor(store: Store, events: ServiceEvents, onReply?: OnReply) {
    // Clients choose their own holds, and each has a connection of its own.
    super(observedStore(store, events, onReply), systemClock, false, true);
    this.#events = events;
  }

  protected override forCaller(error: HoldfastError, key: string | undefined): HoldfastError {
    return error instanceof StoreError ? forClients(error, key) : error;
  }

  /** The reply to a command that is sent until it is answered. */
  replyTo(command: Command): Promise<Reply> {
    return this.ask(command, command.key).then(({ reply }) => reply);
  }

  read(key: string): Promise<Snapshot | null> {
    return this.readBy(key, () => this.store.read(key));
  }

  probe(): Promise<Guarantees> {
    return measured(this.#events, 'probe', () => this.within(this.store.probe(), 'probe'));
  }

  /** Reads a key by a function that is not a part of `Store`. */
  readBy<T>(key: string, read: () => Promise<T>): Promise<T> {
    return measured(this.#events, 'read', () => this.within(read(), 'read', key));
  }

  /** Writes by a function that is not a part of `Store`, once: after a rejection the outcome is unknown. */
  writeBy<T>(operation: string, key: string, write: () => Promise<T>): Promise<T> {
    return measured(this.#events, 'apply', () => this.within(write(), operation, key));
  }

  /** The tokens of all holders of this key. */
  readonly tokensOf = async (key: string): Promise<readonly number[]> => {
    const snapshot = await this.read(key);
    return (snapshot?.holders ?? []).map(({ token }) => token);
  };

  /**
   * Passes locks to `take` in the order of their keys, until it returns false. Rejects in time, and then takes no more.
   */
  each(query: ListQuery, take: (snapshot: Snapshot) => boolean): Promise<void> {
    return this.#feed(this.store.list(query), take);
  }

  /** The same around records that cannot be read, such as those of a newer format. */
  eachReadable(query: ListQuery, take: (snapshot: Snapshot) => boolean): Promise<void> {
    return this.#feed(
      listAround(
        (from) => this.store.list(from),
        query,
        () => undefined,
      ),
      take,
    );
  }

  async #feed(list: AsyncIterable<Snapshot>, take: (snapshot: Snapshot) => boolean): Promise<void> {
    let isAwaited = true;
    const listed = (): Promise<void> => feed(list, (snapshot) => isAwaited && take(snapshot));
    try {
      await measured(this.#events, 'list', () => this.within(listed(), 'list'));
    } finally {
      isAwaited = false;
    }
  }

  /** Waits up to this long for the releases in the background, and then closes: no more commands are sent. */
  async closeWithin(ms: number): Promise<void> {
    const untilMs = monotonicMs() + ms;
    await this.releases.allAnswered(ms);
    // A store that hangs, or is away, does not delay closing.
    const leftMs = Math.max(0, untilMs - monotonicMs());
    await within(leftMs, Promise.allSettled([this.close()]), undefined);
    this.timers.close();
  }
}

/** The same error without the driver's own message. */
export function forClients(error: StoreError, key: string | undefined): StoreError {
  const { operation, outcome, cause } = error;
  const what = key === undefined ? operation : `${operation} of "${key}"`;
  const message =
    outcome === 'unknown'
      ? `The store did not answer the ${what}, so what happened there is unknown. Ask again.`
      : `The store could not be reached for the ${what}. Ask again.`;
  return new StoreError(message, { key, cause, operation, outcome });
}

async function feed(list: AsyncIterable<Snapshot>, take: (snapshot: Snapshot) => boolean): Promise<void> {
  let sinceMs = monotonicMs();
  for await (const snapshot of list) {
    if (!take(snapshot)) return;
    if (monotonicMs() - sinceMs < LISTING_MS_MAX) continue;
    // A store in this process yields all of them at once: renewals must not wait for the last one.
    await new Promise<void>(soon);
    sinceMs = monotonicMs();
  }
}

/** How long a reply's hold lasts at least, counted from before the answered attempt was sent. */
export function remainingOf({ expiresAt, now }: Granted | Renewed, sentMs: number): number {
  return Math.max(0, Math.floor(expiresAt - now - (monotonicMs() - sentMs)));
}
