/**
 * All that the core has to say at one moment travels in one `apply`. Renewals go first, so that they never wait
 * behind claims (F14); a batch is bounded, so that a store with ten thousand renewals due is not blocked by one.
 */
import type { Command, Reply } from '../protocol/commands.js';
import type { Store } from '../protocol/store.js';

const BATCH_MAX = 512;
/** Cheaper than `queueMicrotask`, which keeps track of its caller. */
const SETTLED = Promise.resolve();

export interface Outgoing {
  readonly command: Command;
  onReply(reply: Reply): void;
  onFailure(cause: unknown): void;
}

export class Batching {
  readonly #store: Store;
  #renewals: Outgoing[] = [];
  #others: Outgoing[] = [];
  #scheduled = false;
  readonly #flushNow = (): void => this.#flush();

  constructor(store: Store) {
    this.#store = store;
  }

  send(outgoing: Outgoing): void {
    const lane = outgoing.command.kind === 'renew' ? this.#renewals : this.#others;
    lane.push(outgoing);
    if (this.#scheduled) return;
    this.#scheduled = true;
    void SETTLED.then(this.#flushNow);
  }

  #flush(): void {
    const due = this.#renewals.length > 0 ? this.#renewals.concat(this.#others) : this.#others;
    this.#renewals = [];
    this.#others = [];
    this.#scheduled = false;
    if (due.length <= BATCH_MAX) {
      this.#apply(due);
      return;
    }
    for (let from = 0; from < due.length; from += BATCH_MAX) this.#apply(due.slice(from, from + BATCH_MAX));
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
