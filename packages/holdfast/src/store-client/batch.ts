/**
 * Sends the commands of one moment in one `apply`. Renewals go first, so that they never wait behind claims (F14).
 * Batches are bounded, and the event loop turns between them when it is blocked: ten thousand renewals that are due
 * at once block neither the store nor the process.
 */
import type { Moment } from '../clock.js';
import type { Command, Reply } from '../protocol/commands.js';
import type { Store } from '../protocol/store.js';
import type { TimerQueue } from '../timer-queue.js';

const BATCH_MAX = 256;
/** Cheaper than `queueMicrotask`, which keeps track of its caller. */
const SETTLED = Promise.resolve();

/** A command on its way, and the moment before it was sent. */
export interface PendingCommand extends Moment {
  readonly command: Command;
  onReply(reply: Reply): void;
  onFailure(cause: unknown): void;
}

export class Batch {
  readonly #store: Store;
  readonly #timers: TimerQueue;
  readonly #isSentOnce: boolean;
  readonly #isAfterTurn: boolean;
  #renewals: PendingCommand[] = [];
  #others: PendingCommand[] = [];
  #scheduled = false;
  readonly #flush = (): void => {
    const batch = this.#renewals.length === 0 && this.#others.length <= BATCH_MAX ? this.#others : null;
    if (batch) this.#others = [];
    const due = batch ?? this.#takeRenewalsFirst();
    this.#scheduled = false;
    if (this.#renewals.length + this.#others.length > 0) this.#schedule();
    applyTo(this.#store, due, this.#isSentOnce);
  };

  /**
   * `isSentOnce`: a command is not repeated if its reply was there when `apply` returned. `isAfterTurn`: a batch has the
   * commands of a whole turn of the event loop. For callers with a socket each: Node runs the microtasks after each
   * socket's data, so that otherwise every command would be a batch of its own.
   */
  constructor(store: Store, timers: TimerQueue, isSentOnce: boolean, isAfterTurn = false) {
    this.#store = store;
    this.#timers = timers;
    this.#isSentOnce = isSentOnce;
    this.#isAfterTurn = isAfterTurn;
  }

  /** Whether replies come in the same turn of the event loop, so that commands need no timeout. */
  get answersAtOnce(): boolean {
    return this.#isSentOnce && this.#store.apply.atOnce !== undefined;
  }

  /** The reply or an error, if the store answers at once. Null: the command has to be sent. */
  atOnce(command: Command): Reply | Error | null {
    const { apply } = this.#store;
    if (!this.#isSentOnce || !apply.atOnce || this.#timers.isBlockedAfterShortSteps()) return null;
    try {
      const [reply] = apply.atOnce([command]);
      return reply instanceof Error || isReplyTo(command, reply) ? reply : noReplyError(this.#store);
    } catch (cause) {
      return cause instanceof Error ? cause : noReplyError(this.#store, cause);
    }
  }

  send(pending: PendingCommand): void {
    if (pending.command.kind === 'renew') this.#renewals.push(pending);
    else this.#others.push(pending);
    if (!this.#scheduled) this.#schedule(pending.monotonicMs);
  }

  #schedule(nowMs?: number): void {
    this.#scheduled = true;
    if (this.#isAfterTurn || this.#timers.isBlocked(nowMs)) this.#timers.afterTurn(this.#flush);
    else void SETTLED.then(this.#flush);
  }

  #takeRenewalsFirst(): readonly PendingCommand[] {
    const batch = this.#renewals.splice(0, BATCH_MAX);
    batch.push(...this.#others.splice(0, BATCH_MAX - batch.length));
    return batch;
  }
}

/** Sends these commands now, in this order. Each gets its own reply, or the error that came instead. */
export function applyTo(store: Store, batch: readonly PendingCommand[], isSentOnce = false): void {
  let replies: readonly unknown[];
  try {
    const commands = batch.map(({ command }) => command);
    const { atOnce } = store.apply;
    replies = isSentOnce && atOnce ? atOnce(commands) : store.apply(commands);
    if (!Array.isArray(replies)) throw new TypeError(`The store ${store.name} returned no list of replies.`);
  } catch (cause) {
    for (const pending of batch) pending.onFailure(cause);
    return;
  }
  let index = 0;
  for (const pending of batch) {
    const reply = replies[index++];
    if (reply instanceof Error) pending.onFailure(reply);
    else if (isPromise(reply)) awaitReply(store, pending, reply);
    else tell(store, pending, reply);
  }
}

function awaitReply(store: Store, pending: PendingCommand, reply: PromiseLike<unknown>): void {
  reply.then(
    (answer) => tell(store, pending, answer),
    (cause: unknown) => pending.onFailure(cause),
  );
}

function tell(store: Store, pending: PendingCommand, reply: unknown): void {
  if (isReplyTo(pending.command, reply)) pending.onReply(reply);
  else pending.onFailure(noReplyError(store));
}

const noReplyError = ({ name }: Store, cause?: unknown): Error =>
  new Error(`The store ${name} returned an invalid reply.`, { cause });

const isPromise = (reply: unknown): reply is PromiseLike<unknown> =>
  typeof reply === 'object' && reply !== null && 'then' in reply;

/** Anybody may have written the store: an answer that is no reply to the command counts as none. */
function isReplyTo({ kind }: Command, answer: unknown): answer is Reply {
  if (typeof answer !== 'object' || answer === null) return false;
  const reply = answer as Reply;
  if (!Number.isFinite(reply.now)) return false;
  switch (reply.kind) {
    case 'granted': {
      const { acquiredAt, expiresAt, token, tokenLast } = reply;
      return kind === 'claim' && Number.isFinite(acquiredAt + expiresAt) && areTokens(token, tokenLast);
    }
    case 'busy':
      return (
        kind === 'claim' && isHint(reply.freeInMs) && isPlace(reply.position) && Array.isArray(reply.holders)
      );
    case 'withdrawn':
      return kind === 'claim';
    case 'renewed': {
      const { block } = reply;
      const isBlockFine = !block || areTokens(block.token, block.tokenLast);
      return kind === 'renew' && Number.isFinite(reply.expiresAt) && isBlockFine;
    }
    case 'lost':
      return kind === 'renew';
    case 'released':
      return kind === 'release';
    case 'evicted':
      return kind === 'evict';
    default:
      return false;
  }
}

/** A timer whose time is not a number would be first in the timer queue, and never due. */
const isHint = (ms: unknown): boolean => typeof ms === 'number' && !Number.isNaN(ms);

const isPlace = (position: unknown): boolean => position === null || Number.isSafeInteger(position);

const areTokens = (first: number, last: number): boolean =>
  Number.isSafeInteger(first) && Number.isSafeInteger(last) && last >= first;
