/**
 * All calls of one process to one store. Knows a `Store` and a `Clock`, and nothing of queues or leases.
 *
 * Commands are sent until they are answered; commands of one moment share a batch. Every wait for an answer has a limit,
 * so that no call hangs with the store.
 */
import type { Clock } from '../clock.js';
import type { Command, Reply } from '../protocol/commands.js';
import { HoldfastError, isPermanent, UnsupportedError } from '../protocol/errors.js';
import type { Store } from '../protocol/store.js';
import { TimerQueue } from '../timer-queue.js';
import { type Answer, AskedCommand } from './asked-command.js';
import { BackgroundReleases } from './background-releases.js';
import { applyTo, Batch, type PendingCommand } from './batch.js';
import type { Sender } from './retried-command.js';
import { storeError, unsupportedError } from './store-error.js';
import { WakeListener } from './wake-listener.js';

/** How long an answer is awaited if the caller gave no `wait`. */
const CALL_MS_MAX = 5_000;
/** The pause before a call that failed is made again. */
const AGAIN_MS = 50;

/** How many clients use a store: the last one closes it. */
const users = new WeakMap<Store, number>();

/** Sends commands to a store until they are answered, in batches; receives wake-ups; releases in the background. */
export class StoreClient implements Sender {
  readonly store: Store;
  readonly clock: Clock;
  readonly timers: TimerQueue;
  readonly wakes: WakeListener;
  readonly batch: Batch;
  roundTripMs = 0;
  storeAheadMs = 0;
  /** Whether `ask` sends its command again, until its time is over, while the store is known to be away. */
  protected readonly asksWhileAway: boolean = false;
  readonly releases = new BackgroundReleases(this);

  /**
   * `makesAllHolds`: only this client sends commands with its holds, so that none is ever sent twice by chance.
   * `isAfterTurn`: commands of one turn of the event loop share a batch, as in `Batch`.
   */
  constructor(store: Store, clock: Clock, makesAllHolds = false, isAfterTurn = false) {
    this.store = store;
    users.set(store, (users.get(store) ?? 0) + 1);
    this.clock = clock;
    this.timers = new TimerQueue(clock);
    this.batch = new Batch(store, this.timers, makesAllHolds, isAfterTurn);
    this.wakes = new WakeListener(store, clock);
  }

  /** An estimate of the store's time now, for people to read. */
  storeNow(): number {
    return Math.round(this.clock.monotonicMs() + this.storeAheadMs);
  }

  /** Sends a command until it is answered, or rejects with a `StoreError` after a while; `name` is the key in it. */
  ask(command: Command, name: string, operation: string = command.kind): Promise<Answer> {
    const question = { command, operation, name, awaitedMs: CALL_MS_MAX, whileAway: this.asksWhileAway };
    return new Promise((resolve, reject) => {
      new AskedCommand(this, question, resolve, (error) => reject(this.forCaller(error, name)));
    });
  }

  /** Sends each command once, in one batch and in this order, for callers that repeat commands themselves. */
  attempt(commands: readonly Command[]): readonly Promise<Reply>[] {
    const monotonicMs = this.clock.monotonicMs();
    const wallMs = this.clock.wallMs();
    const pending: PendingCommand[] = [];
    const replies = commands.map((command) => {
      const reply = new Promise<Reply>((onReply, onFailure) => {
        pending.push({ command, monotonicMs, wallMs, onReply, onFailure });
      });
      return this.within(reply, command.kind, command.key);
    });
    if (pending.length > 0) applyTo(this.store, pending);
    return replies;
  }

  /** The answer, or a `StoreError` when it fails or does not come in time. */
  within<T>(answer: Promise<T>, operation: string, key?: string): Promise<T> {
    return new Promise((resolve, reject) => {
      const fail = (error: HoldfastError): void => reject(this.forCaller(error, key));
      const onTimer = (): void => fail(storeError(operation, key));
      const timer = this.timers.call(this.clock.monotonicMs() + CALL_MS_MAX, onTimer);
      answer.then(
        (value) => {
          this.timers.cancel(timer);
          if (this.timers.isBlocked()) this.timers.afterTurn(() => resolve(value));
          else resolve(value);
        },
        (error: unknown) => {
          this.timers.cancel(timer);
          if (error instanceof UnsupportedError) fail(unsupportedError(key, error));
          else fail(error instanceof HoldfastError ? error : storeError(operation, key, error));
        },
      );
    });
  }

  /** Makes a call again until it succeeds, or until its time is over. */
  async retryWithin(call: () => Promise<void>, operation: string, key: string): Promise<void> {
    const untilMs = this.clock.monotonicMs() + CALL_MS_MAX;
    const retry = async (): Promise<void> => {
      for (;;) {
        try {
          return await call();
        } catch (error) {
          const isOver = this.clock.monotonicMs() + AGAIN_MS >= untilMs;
          if (error instanceof HoldfastError || isOver || isPermanent(error)) throw error;
        }
        await this.pause(AGAIN_MS);
      }
    };
    await this.within(retry(), operation, key);
  }

  /** An error as callers of this client get it. */
  protected forCaller(error: HoldfastError, _key: string | undefined): HoldfastError {
    return error;
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.timers.call(this.clock.monotonicMs() + ms, resolve);
    });
  }

  /** Gives up all releases, whose callers get the outcome `unknown`, and closes the store unless others use it. */
  async close(): Promise<void> {
    this.releases.stop();
    try {
      await this.within(this.#closeStore(), 'close');
    } finally {
      this.timers.close();
    }
  }

  async #closeStore(): Promise<void> {
    const left = (users.get(this.store) ?? 1) - 1;
    users.set(this.store, left);
    const closeStore = async (): Promise<void> => (left === 0 ? this.store.close() : undefined);
    // If one of the two hangs or fails, the other is still closed.
    for (const outcome of await Promise.allSettled([this.wakes.stop(), closeStore()])) {
      if (outcome.status === 'rejected') throw outcome.reason;
    }
  }
}
