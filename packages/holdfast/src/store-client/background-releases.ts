/**
 * Releases, each sent in the background until it is answered, or until the hold must have expired at the store. A caller
 * may await a release, but not for ever.
 */
import type { Moment } from '../clock.js';
import { type Linked, LinkedList } from '../linked-list.js';
import type { Release, Reply } from '../protocol/commands.js';
import { KEEP_MS } from '../protocol/constants.js';
import { StoreError } from '../protocol/errors.js';
import type { HoldId } from '../protocol/state.js';
import type { Task } from '../timer-queue.js';
import { RetriedCommand, type RetryListener, type Sender } from './retried-command.js';
import { because } from './store-error.js';

/** How long a release is awaited before its outcome counts as unknown. */
const RELEASE_MS = 2_000;
/** Above this number, while the store is away, the oldest releases are given up: their holds are the first to expire. */
const RELEASES_MAX = 10_000;

/** A caller that awaits a release. */
interface Caller {
  readonly name: string;
  readonly resolve: () => void;
  readonly reject: (error: StoreError) => void;
}

class ReleaseCommand extends RetriedCommand implements Linked<ReleaseCommand> {
  previous: ReleaseCommand | null = null;
  next: ReleaseCommand | null = null;
  isListed = false;
  readonly caller: Caller | null;
  readonly untilMs: number;
  /** The caller's timeout, set when an attempt is unknown. Until then, the first attempt keeps the process alive. */
  timer: Task | null = null;
  /** Why the last attempt is unknown. */
  cause: unknown;

  constructor(
    sender: Sender,
    command: Release,
    ttlMs: number,
    lifeMs: number,
    listener: RetryListener,
    caller: Caller | null,
  ) {
    super(sender, command, ttlMs, listener, caller !== null);
    this.caller = caller;
    this.untilMs = this.monotonicMs + lifeMs + KEEP_MS;
  }

  /** Rejects the caller's promise. Does nothing if the promise is settled already. */
  tellUnknown(): void {
    if (!this.caller) return;
    const { name, reject } = this.caller;
    const message =
      `The store did not answer the release of "${name}"${because(this.cause)}. It is tried again in the background; ` +
      'at the latest the lock is free when its lease runs out.';
    reject(new StoreError(message, { key: name, cause: this.cause, operation: 'release' }));
  }
}

export class BackgroundReleases implements RetryListener {
  readonly #sender: Sender;
  readonly #pending = new LinkedList<ReleaseCommand>();
  #onAllAnswered: (() => void) | null = null;

  constructor(sender: Sender) {
    this.#sender = sender;
  }

  /**
   * Ends a hold. Rejects when there is no answer for a while, and goes on in the background. `name`: the key, for messages.
   * `lifeMs`: how long the store may keep the hold.
   */
  release(command: Release, name: string, ttlMs: number, lifeMs: number): Promise<void> {
    return new Promise((resolve, reject) =>
      this.#pending.add(
        new ReleaseCommand(this.#sender, command, ttlMs, lifeMs, this, { name, resolve, reject }),
      ),
    );
  }

  /** Takes back a claim whose caller stopped waiting: a late grant is given back, never leaked (F5). */
  withdraw(key: string, hold: HoldId, ttlMs: number, lifeMs = ttlMs): void {
    const command = { kind: 'release', key, hold, minHoldMs: 0 } as const;
    this.#pending.add(new ReleaseCommand(this.#sender, command, ttlMs, lifeMs, this, null));
    if (this.#pending.size > RELEASES_MAX && this.#pending.first) this.#giveUp(this.#pending.first);
  }

  onReply(_reply: Reply, _sent: Moment, from: RetriedCommand): void {
    if (!(from instanceof ReleaseCommand)) return;
    this.#remove(from);
    from.caller?.resolve();
  }

  onUnknown(cause: unknown, from: RetriedCommand): void {
    if (!(from instanceof ReleaseCommand)) return;
    const { clock, timers } = this.#sender;
    from.cause = cause;
    if (clock.monotonicMs() >= from.untilMs) this.#giveUp(from);
    else if (from.caller) from.timer ??= timers.call(from.monotonicMs + RELEASE_MS, () => from.tellUnknown());
  }

  /** Resolves when every release has been answered, or after `withinMs`. */
  async allAnswered(withinMs = RELEASE_MS): Promise<void> {
    if (this.#pending.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#onAllAnswered = resolve;
      this.#sender.timers.call(this.#sender.clock.monotonicMs() + withinMs, resolve);
    });
  }

  /** Gives all releases up. Their callers get the outcome `unknown`. */
  stop(): void {
    for (const release of this.#pending) this.#giveUp(release);
  }

  #giveUp(release: ReleaseCommand): void {
    release.stop();
    this.#remove(release);
    release.tellUnknown();
  }

  #remove(release: ReleaseCommand): void {
    this.#pending.remove(release);
    if (release.timer) this.#sender.timers.cancel(release.timer);
    if (this.#pending.size === 0) this.#onAllAnswered?.();
  }
}
