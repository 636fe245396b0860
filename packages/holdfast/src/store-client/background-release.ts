/**
 * A release, sent in the background until it is answered, or until the hold must have expired at the store. Somebody
 * may await it, but not for ever. Also takes back a claim that nobody waits for any more (F5).
 */
import type { Linked } from '../linked-list.js';
import type { Release } from '../protocol/commands.js';
import { KEEP_MS } from '../protocol/constants.js';
import { StoreError } from '../protocol/errors.js';
import type { Task } from '../timer-queue.js';
import { RetriedCommand, type RetryListener, type Sender } from './retried-command.js';
import { because } from './store-error.js';

/** How long a release is awaited before its outcome counts as unknown. */
export const RELEASE_MS = 2_000;

/** Whoever awaits the release. */
export interface ReleaseCaller {
  readonly name: string;
  readonly resolve: () => void;
  readonly reject: (error: StoreError) => void;
}

export class BackgroundRelease implements Task, RetryListener, Linked<BackgroundRelease> {
  index = -1;
  previous: BackgroundRelease | null = null;
  next: BackgroundRelease | null = null;
  isListed = false;
  readonly #sender: Sender;
  readonly #caller: ReleaseCaller | null;
  readonly #untilMs: number;
  readonly #release: RetriedCommand;
  readonly #onEnd: (ended: BackgroundRelease) => void;
  #cause: unknown;
  #isUnknown = false;

  /** `lifeMs`: how long the store may keep the hold that is to be ended. */
  constructor(
    sender: Sender,
    command: Release,
    ttlMs: number,
    lifeMs: number,
    caller: ReleaseCaller | null,
    onEnd: (ended: BackgroundRelease) => void,
  ) {
    this.#sender = sender;
    this.#caller = caller;
    this.#onEnd = onEnd;
    this.#release = new RetriedCommand(sender, command, ttlMs, this, caller !== null);
    this.#untilMs = this.#release.monotonicMs + lifeMs + KEEP_MS;
  }

  onReply(): void {
    if (this.index !== -1) this.#sender.timers.cancel(this);
    this.#onEnd(this);
    this.#caller?.resolve();
  }

  onUnknown(cause: unknown): void {
    this.#cause = cause;
    const { clock, timers } = this.#sender;
    // The first attempt kept the process alive for the caller until now.
    if (this.#caller && !this.#isUnknown) timers.schedule(this, this.#release.monotonicMs + RELEASE_MS, true);
    this.#isUnknown = true;
    if (clock.monotonicMs() >= this.#untilMs) this.stop();
  }

  /** The caller is told that the outcome is unknown. Attempts go on. */
  onDue(): void {
    const key = this.#caller?.name;
    const message =
      `The store did not answer the release of "${key}"${because(this.#cause)}. It is tried again in the background; ` +
      'at the latest the lock is free when its lease runs out.';
    this.#caller?.reject(new StoreError(message, { key, cause: this.#cause, operation: 'release' }));
  }

  stop(): void {
    this.#release.stop();
    this.#sender.timers.cancel(this);
    this.#onEnd(this);
    // Nobody waits for ever. Once the caller was told anything, this changes nothing.
    if (this.#caller) this.onDue();
  }
}
