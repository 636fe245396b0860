/**
 * Keeps commands from a client that has no connection. The client would keep them and send them later, so that nobody
 * could say whether they will be executed, and its errors do not say why there is none. A command that comes while the
 * connection is being made waits for it; one that comes while it is broken is not sent, and its error says why.
 */
import { errorMonitor } from 'node:events';
import { NotExecutedError } from '../../protocol/index.js';
import { notExecuted } from '../clients/errors.js';

export type State = 'ready' | 'connecting' | 'broken';

export interface Gated {
  on(event: string | symbol, listener: (error?: unknown) => void): unknown;
}

export interface Client {
  state(): State;
  /** Begins to connect, if nobody has. */
  connect(): void;
}

interface Waiting {
  readonly pass: () => void;
  readonly fail: (error: NotExecutedError) => void;
}

/** One per client: several stores may share it, and listeners of an emitter are few. */
const gates = new WeakMap<Gated, Gate>();

export class Gate {
  readonly #client: Client;
  #waiting: Waiting[] = [];
  #trouble: unknown = null;
  /** How often the connection broke, or could not be made, since it was ready. */
  #breaks: number;

  /** `broken`: the event that tells of every connection that broke or could not be made. */
  static of(emitter: Gated, broken: string | symbol, client: Client): Gate {
    const gate = gates.get(emitter) ?? new Gate(emitter, broken, client);
    gates.set(emitter, gate);
    return gate;
  }

  private constructor(emitter: Gated, broken: string | symbol, client: Client) {
    this.#client = client;
    this.#breaks = { ready: 0, connecting: 1, broken: 2 }[client.state()];
    // The monitor only looks on: a client whose user handles no errors still behaves as without this.
    emitter.on(errorMonitor, (error) => {
      this.#trouble = error;
    });
    emitter.on(broken, () => this.#onBroken());
    emitter.on('ready', () => this.#onReady());
  }

  get isOpen(): boolean {
    return this.#client.state() === 'ready';
  }

  /** Resolves when the client can send, and rejects with a `NotExecutedError` when it cannot. */
  wait(): Promise<void> {
    const state = this.#client.state();
    if (state === 'ready') return Promise.resolve();
    // What was wrong last is wrong still, as far as anybody knows.
    if (state === 'broken' || this.#trouble !== null) return Promise.reject(this.#error());
    return new Promise((resolve, reject) => {
      this.#waiting.push({ pass: resolve, fail: reject });
      this.#client.connect();
    });
  }

  #onReady(): void {
    this.#trouble = null;
    this.#breaks = 0;
    for (const { pass } of this.#waiting.splice(0)) pass();
  }

  #onBroken(): void {
    this.#breaks += 1;
    for (const { fail } of this.#waiting.splice(0)) fail(this.#error());
  }

  #error(): NotExecutedError {
    const known = notExecuted(this.#trouble);
    if (known) return known;
    const words = this.#trouble instanceof Error ? ` (${this.#trouble.message})` : '';
    // A connection that has just broken comes back at once, as a rule.
    const retry = this.#breaks > 1 ? 'while-waiting' : 'at-once';
    const text = `there is no connection to Redis now${words}: is the server running, and is the client given its address?`;
    return new NotExecutedError(text, retry, this.#trouble ?? undefined);
  }
}
