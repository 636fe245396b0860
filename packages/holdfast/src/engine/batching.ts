/**
 * All that the core has to say at one moment travels in one `apply`. Renewals go first, so that they never wait
 * behind claims (F14); a batch is bounded, so that a store with ten thousand renewals due is not blocked by one.
 */
import type { Command, Reply } from '../protocol/commands.js';
import type { Store } from '../protocol/store.js';

const BATCH_MAX = 512;

interface Outgoing {
  readonly command: Command;
  readonly onReply: (reply: Reply) => void;
  readonly onFailure: (cause: unknown) => void;
}

export class Batching {
  readonly #store: Store;
  #renewals: Outgoing[] = [];
  #others: Outgoing[] = [];
  #scheduled = false;

  constructor(store: Store) {
    this.#store = store;
  }

  send(command: Command, onReply: (reply: Reply) => void, onFailure: (cause: unknown) => void): void {
    const lane = command.kind === 'renew' ? this.#renewals : this.#others;
    lane.push({ command, onReply, onFailure });
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => this.#flush());
  }

  #flush(): void {
    const due = this.#renewals.length > 0 ? this.#renewals.concat(this.#others) : this.#others;
    this.#renewals = [];
    this.#others = [];
    this.#scheduled = false;
    for (let from = 0; from < due.length; from += BATCH_MAX) this.#apply(due.slice(from, from + BATCH_MAX));
  }

  #apply(batch: readonly Outgoing[]): void {
    try {
      const replies = this.#store.apply(batch.map(({ command }) => command));
      batch.forEach(({ onReply, onFailure }, index) => {
        const reply = replies[index];
        if (reply) reply.then(onReply, onFailure);
        else onFailure(new Error(`The store ${this.#store.name} left a command unanswered.`));
      });
    } catch (cause) {
      for (const { onFailure } of batch) onFailure(cause);
    }
  }
}
