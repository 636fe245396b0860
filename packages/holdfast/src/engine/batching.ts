/**
 * Sends the commands of one moment in one `apply`. Renewals go first, so that they never wait behind claims (F14).
 * Batches are bounded, and the event loop turns between them when it is blocked: ten thousand renewals that are due
 * at once block neither the store nor the process.
 */
import type { Command, Reply } from '../protocol/commands.js';
import type { Store } from '../protocol/store.js';
import type { EventLoop } from './event-loop.js';
import type { Moment } from './validity.js';

const BATCH_MAX = 256;
/** Cheaper than `queueMicrotask`, which keeps track of its caller. */
const SETTLED = Promise.resolve();

/** A command, and the moment at which it was handed in. */
export interface Outgoing extends Moment {
  readonly command: Command;
  onReply(reply: Reply): void;
  onFailure(cause: unknown): void;
}

export class Batching {
  readonly #store: Store;
  readonly #loop: EventLoop;
  #renewals: Outgoing[] = [];
  #others: Outgoing[] = [];
  #scheduled = false;
  readonly #flushNow = (): void => this.#flush();

  constructor(store: Store, loop: EventLoop) {
    this.#store = store;
    this.#loop = loop;
  }

  send(outgoing: Outgoing): void {
    const lane = outgoing.command.kind === 'renew' ? this.#renewals : this.#others;
    lane.push(outgoing);
    if (!this.#scheduled) this.#schedule(outgoing.monotonicMs);
  }

  #schedule(nowMs?: number): void {
    this.#scheduled = true;
    if (this.#loop.isBlocked(nowMs)) this.#loop.afterTurn(this.#flushNow);
    else void SETTLED.then(this.#flushNow);
  }

  #flush(): void {
    const batch = this.#take();
    this.#scheduled = false;
    if (this.#renewals.length + this.#others.length > 0) this.#schedule();
    this.#apply(batch);
  }

  #take(): readonly Outgoing[] {
    const others = this.#others;
    if (this.#renewals.length === 0 && others.length <= BATCH_MAX) {
      this.#others = [];
      return others;
    }
    const batch = this.#renewals.splice(0, BATCH_MAX);
    batch.push(...others.splice(0, BATCH_MAX - batch.length));
    return batch;
  }

  #hear(outgoing: Outgoing, answer: Reply): void {
    if (isAnswerTo(outgoing.command, answer)) outgoing.onReply(answer);
    else outgoing.onFailure(new Error(`The store ${this.#store.name} answered something that is no reply.`));
  }

  #apply(batch: readonly Outgoing[]): void {
    try {
      const replies = this.#store.apply(batch.map(({ command }) => command));
      batch.forEach((outgoing, index) => {
        const onFailure = (cause: unknown): void => outgoing.onFailure(cause);
        const reply = replies[index];
        if (!reply) onFailure(new Error(`The store ${this.#store.name} left a command unanswered.`));
        else reply.then((answer) => this.#hear(outgoing, answer), onFailure);
      });
    } catch (cause) {
      for (const outgoing of batch) outgoing.onFailure(cause);
    }
  }
}

/** A store may be anybody's: what is no answer counts as none. */
function isAnswerTo({ kind }: Command, answer: Reply | null | undefined): boolean {
  if (!answer || !Number.isFinite(answer.now)) return false;
  switch (answer.kind) {
    case 'granted':
      return kind === 'claim' && Number.isFinite(answer.expiresAt) && areTokens(answer);
    case 'busy':
    case 'withdrawn':
      return kind === 'claim';
    case 'renewed':
      return (
        kind === 'renew' && Number.isFinite(answer.expiresAt) && (!answer.block || areTokens(answer.block))
      );
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

function areTokens({ token, tokenLast }: { readonly token: number; readonly tokenLast: number }): boolean {
  return Number.isSafeInteger(token) && Number.isSafeInteger(tokenLast) && tokenLast >= token;
}
