/**
 * Keeps commands from a client that is not connected. The client would queue them and send them later, so that their
 * outcome would be unknown, and its errors do not give the reason. A command waits while the client connects. While the
 * connection is broken it is not sent, and its error gives the reason.
 */
import { errorMonitor } from 'node:events';
import { NotExecutedError } from '../../protocol/index.js';
import { notExecuted } from '../clients/errors.js';

export type ConnectionState = 'ready' | 'connecting' | 'broken';

export interface Emitter {
  on(event: string | symbol, listener: (error?: unknown) => void): unknown;
}

export interface GuardedClient {
  state(): ConnectionState;
  /** Begins to connect, unless the client already does. */
  connect(): void;
}

interface WaitingCommand {
  readonly resolve: () => void;
  readonly reject: (error: NotExecutedError) => void;
}

/** One per client: several stores may share it, and an emitter warns of many listeners. */
const guards = new WeakMap<Emitter, OfflineGuard>();

export class OfflineGuard {
  readonly #client: GuardedClient;
  #waiting: WaitingCommand[] = [];
  #error: unknown = null;
  /** How often the connection broke, or failed, since it was last ready. */
  #breaks: number;
  #allBreaks = 0;

  /** `brokenEvent`: emitted when a connection breaks or fails. */
  static of(emitter: Emitter, brokenEvent: string | symbol, client: GuardedClient): OfflineGuard {
    const guard = guards.get(emitter) ?? new OfflineGuard(emitter, brokenEvent, client);
    guards.set(emitter, guard);
    return guard;
  }

  private constructor(emitter: Emitter, brokenEvent: string | symbol, client: GuardedClient) {
    this.#client = client;
    this.#breaks = { ready: 0, connecting: 1, broken: 2 }[client.state()];
    // `errorMonitor` does not count as a handler: an unhandled 'error' of the client stays unhandled.
    emitter.on(errorMonitor, (error) => {
      this.#error = error;
    });
    emitter.on(brokenEvent, () => this.#onBroken());
    emitter.on('ready', () => this.#onReady());
  }

  /** How often the connection broke, or failed. */
  get breaks(): number {
    return this.#allBreaks;
  }

  get isReady(): boolean {
    return this.#client.state() === 'ready';
  }

  /** Resolves when the client can send, and rejects with a `NotExecutedError` when it cannot. */
  wait(): Promise<void> {
    const state = this.#client.state();
    if (state === 'ready') return Promise.resolve();
    // The last error holds until a connection succeeds.
    if (state === 'broken' || this.#error !== null) return Promise.reject(this.#notConnected());
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#client.connect();
    });
  }

  #onReady(): void {
    this.#error = null;
    this.#breaks = 0;
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }

  #onBroken(): void {
    this.#breaks += 1;
    this.#allBreaks += 1;
    for (const { reject } of this.#waiting.splice(0)) reject(this.#notConnected());
  }

  #notConnected(): NotExecutedError {
    const known = notExecuted(this.#error);
    if (known) return known;
    const reason = this.#error instanceof Error ? ` (${this.#error.message})` : '';
    // A connection that has just broken usually comes back at once.
    const retry = this.#breaks > 1 ? 'while-waiting' : 'at-once';
    const text = `there is no connection to Redis now${reason}: is the server running, and does the client have its address?`;
    return new NotExecutedError(text, retry, this.#error ?? undefined);
  }
}
