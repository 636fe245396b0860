/**
 * A release or a withdrawal, said in the background until it is answered, or until whatever it ends must have expired
 * at the store. Somebody may await it, but not for ever.
 */
import type { Release } from '../protocol/commands.js';
import { KEEP_MS } from '../protocol/constants.js';
import { StoreError } from '../protocol/errors.js';
import type { Appointment } from './agenda.js';
import { Conversation, type Speaker } from './conversation.js';
import type { Core } from './core.js';

/** How long somebody awaits a release before its outcome counts as unknown. */
export const RELEASE_MS = 2_000;

/** What one who awaits it is told. */
export interface Awaiting {
  readonly name: string;
  readonly resolve: () => void;
  readonly reject: (error: StoreError) => void;
}

export class Farewell implements Speaker {
  readonly #core: Core;
  readonly #awaiting: Awaiting | null;
  readonly #sinceMs: number;
  readonly #untilMs: number;
  readonly #talk: Conversation;
  #timer: Appointment | null = null;

  constructor(core: Core, command: Release, ttlMs: number, awaiting: Awaiting | null) {
    this.#core = core;
    this.#awaiting = awaiting;
    this.#sinceMs = core.clock.monotonicMs();
    this.#untilMs = this.#sinceMs + ttlMs + KEEP_MS;
    this.#talk = new Conversation(core, command, ttlMs, this);
  }

  onReply(): void {
    this.stop();
    this.#awaiting?.resolve();
  }

  onUnknown(cause: unknown): void {
    const { agenda, clock } = this.#core;
    if (clock.monotonicMs() >= this.#untilMs) this.stop();
    if (!this.#awaiting || this.#timer) return;
    this.#timer = agenda.call(this.#sinceMs + RELEASE_MS, () => this.#onTimer(cause));
  }

  stop(): void {
    this.#talk.stop();
    this.#core.agenda.cancel(this.#timer);
    this.#core.farewellSaid(this);
  }

  #onTimer(cause: unknown): void {
    const key = this.#awaiting?.name;
    const message =
      `The store did not answer the release of "${key}". It is tried again in the background; ` +
      'at the latest the lock is free when its ttl is over.';
    this.#awaiting?.reject(new StoreError(message, { key, cause, operation: 'release' }));
  }
}
