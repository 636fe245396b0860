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
import { because } from './patience.js';

/** How long somebody awaits a release before its outcome counts as unknown. */
export const RELEASE_MS = 2_000;

/** What one who awaits it is told. */
export interface Awaiting {
  readonly name: string;
  readonly resolve: () => void;
  readonly reject: (error: StoreError) => void;
}

export class Farewell implements Appointment, Speaker {
  index = -1;
  readonly #core: Core;
  readonly #awaiting: Awaiting | null;
  readonly #untilMs: number;
  readonly #talk: Conversation;
  #cause: unknown;

  /** `lifeMs`: how long the store may keep what is to be ended. */
  constructor(core: Core, command: Release, ttlMs: number, lifeMs: number, awaiting: Awaiting | null) {
    this.#core = core;
    this.#awaiting = awaiting;
    this.#talk = new Conversation(core, command, ttlMs, this);
    const { sinceMs } = this.#talk;
    this.#untilMs = sinceMs + lifeMs + KEEP_MS;
    if (awaiting) core.agenda.schedule(this, sinceMs + RELEASE_MS, true);
  }

  onReply(): void {
    this.stop();
    this.#awaiting?.resolve();
  }

  onUnknown(cause: unknown): void {
    this.#cause = cause;
    if (this.#core.clock.monotonicMs() >= this.#untilMs) this.stop();
  }

  /** Nobody awaits it any more; it goes on all the same. */
  onDue(): void {
    const key = this.#awaiting?.name;
    const message =
      `The store did not answer the release of "${key}"${because(this.#cause)}. It is tried again in the background; ` +
      'at the latest the lock is free when its lease runs out.';
    this.#awaiting?.reject(new StoreError(message, { key, cause: this.#cause, operation: 'release' }));
  }

  stop(): void {
    this.#talk.stop();
    this.#core.agenda.cancel(this);
    this.#core.farewellSaid(this);
  }
}
