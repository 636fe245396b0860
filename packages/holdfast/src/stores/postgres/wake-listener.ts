/**
 * Receives wake-ups over one connection per store that does nothing but LISTEN. Wake-ups are an optimisation: a lost
 * connection only costs waiters time, and a timer opens it again. A hanging connection delays nothing.
 */
import { createHash } from 'node:crypto';
import { systemClock, type Timer } from '../../clock.js';
import { UntilEnded } from '../clients/until-ended.js';
import type { OnListening } from '../clients/wake-up.js';
import { CHANNEL_BYTES_MAX, CHANNEL_PREFIX } from './sql/apply.js';
import { quoteName } from './sql/names.js';

/** A Client of `pg`, not connected yet. */
export interface ListenClient {
  connect(): Promise<unknown>;
  query(text: string): Promise<unknown>;
  end(): Promise<void>;
  on(
    event: 'notification',
    run: (message: { channel: string; payload?: string | undefined }) => void,
  ): unknown;
  on(event: 'error' | 'end', run: (error?: unknown) => void): unknown;
  unref?(): void;
}

export interface ChannelListener {
  receive(payload: string): void;
  onListening?: OnListening | undefined;
}

export interface WakeListener {
  /** Resolves with a function that stops. Rejects if listening fails. */
  listen(channel: string, listener: ChannelListener): Promise<() => Promise<void>>;
  /** A command met a broken connection: the listening connection may be broken, too, without an event. */
  suspect(): void;
  /** Why no wake-ups are received now; null while listening works. */
  error(): unknown;
  close(): void;
}

export const RECONNECT_MS = 500;
/** A connection that takes longer than this to open is given up. */
const OPENING_MS_MAX = 10_000;

/** An inbox as a channel of NOTIFY. `_notify` in sql/apply.ts does the same. */
export function channelOf(inbox: string): string {
  const channel = `${CHANNEL_PREFIX}${inbox}`;
  if (Buffer.byteLength(channel) <= CHANNEL_BYTES_MAX) return channel;
  return `${CHANNEL_PREFIX}${createHash('md5').update(inbox).digest('hex')}`;
}

/** One connection, from opening to loss. */
class ListenConnection {
  readonly #client: ListenClient;
  readonly #onLost: () => void;
  readonly #connecting: Timer;
  readonly #untilLost = new UntilEnded();
  /** Why it was lost. */
  error: unknown = null;
  #lost = false;
  /** Statements run one after the other. */
  #tail: Promise<unknown>;

  constructor(client: ListenClient, receive: (channel: string, payload: string) => void, onLost: () => void) {
    this.#client = client;
    this.#onLost = onLost;
    client.on('error', this.#lose);
    client.on('end', () => this.drop());
    client.on('notification', ({ channel, payload }) => receive(channel, payload ?? ''));
    this.#connecting = systemClock.timer(OPENING_MS_MAX, () =>
      this.#lose(new Error(`The connection for wake-ups did not open within ${OPENING_MS_MAX} ms.`)),
    );
    this.#connecting.keepAlive(false);
    this.#tail = client.connect().then(() => {
      this.#connecting.cancel();
      client.unref?.();
    });
    // Already now, before it is connected: a connection that never opens must not keep the process alive.
    client.unref?.();
    this.#tail.catch(this.#lose);
  }

  readonly #note = (error: unknown): void => {
    this.error ??= error;
  };

  readonly #lose = (error: unknown): void => {
    this.#note(error);
    this.drop();
  };

  get usable(): boolean {
    return !this.#lost;
  }

  /** Rejects when the statement fails or the connection is lost; a failed statement ends the connection. */
  async run(statement: string): Promise<void> {
    const done = this.#tail.then(() => this.#client.query(statement));
    this.#tail = done;
    done.catch(this.#lose);
    await this.#untilLost.wait(done);
  }

  /** Like `run`, without waiting. */
  start(statement: string): void {
    this.run(statement).catch(this.#note);
  }

  drop(): void {
    if (this.#lost) return;
    this.#lost = true;
    this.#connecting.cancel();
    this.#untilLost.end(this.error ?? new Error('The connection for wake-ups is gone.'));
    // Not awaited: a half-open connection ends only when the other side answers.
    this.#client.end().catch(this.#note);
    this.#onLost();
  }
}

/** Listens over a connection made by `make`. */
export function pgWakeListener(make: () => ListenClient): WakeListener {
  const listeners = new Map<string, Set<ChannelListener>>();
  let connection: ListenConnection | null = null;
  let reconnecting: Timer | null = null;
  let wasLost = false;
  let failure: unknown = null;

  function tellAll(listening: boolean): void {
    for (const own of [...listeners.values()].flatMap((set) => [...set])) own.onListening?.(listening);
  }

  /** Opens a connection and listens on every channel. */
  async function connect(): Promise<void> {
    const receive = (channel: string, payload: string): void => {
      for (const listener of listeners.get(channel) ?? []) listener.receive(payload);
    };
    const made = new ListenConnection(make(), receive, () => {
      if (connection !== made) return;
      wasLost = true;
      tellAll(false);
      reconnectLater();
    });
    connection = made;
    failure = null;
    await Promise.all([...listeners.keys()].map((channel) => made.run(`LISTEN ${quoteName(channel)}`)));
    if (connection !== made || !wasLost) return;
    wasLost = false;
    tellAll(true);
  }

  function reconnectLater(): void {
    if (reconnecting || listeners.size === 0) return;
    reconnecting = systemClock.timer(RECONNECT_MS, () => {
      reconnecting = null;
      if (listeners.size === 0 || connection?.usable) return;
      connect().catch((error: unknown) => {
        failure = error;
        reconnectLater();
      });
    });
    reconnecting.keepAlive(false);
  }

  function forget(channel: string, listener: ChannelListener): boolean {
    const own = listeners.get(channel);
    own?.delete(listener);
    return own?.size === 0 && listeners.delete(channel);
  }

  return {
    async listen(channel, listener) {
      listeners.set(channel, (listeners.get(channel) ?? new Set()).add(listener));
      try {
        await (connection?.usable ? connection.run(`LISTEN ${quoteName(channel)}`) : connect());
      } catch (error) {
        forget(channel, listener);
        throw error;
      }
      return async () => {
        // Not awaited: from now on no wake-ups are delivered, even if the server never gets this statement.
        if (forget(channel, listener) && connection?.usable) {
          connection.start(`UNLISTEN ${quoteName(channel)}`);
        }
      };
    },
    // Events of the connection report its loss.
    suspect: () => undefined,
    error: () => (connection?.usable ? null : (failure ?? connection?.error ?? null)),
    close() {
      listeners.clear();
      reconnecting?.cancel();
      connection?.drop();
    },
  };
}
