/** One request that waits: until when, for whom, and what it is told in the end. */
import type { WaiterView } from 'holdfast/protocol';
import { after, type Cancel, wallMs } from '../clock.js';
import type { Contender } from './contender.js';
import type { Outcome, Wanted } from './wanted.js';

/** Who keeps waiters in line. */
export interface Keeper {
  overdue(waiter: Waiter): void;
  gone(waiter: Waiter): void;
}

export class Waiter {
  wanted: Wanted;
  contender: Contender | null = null;
  /** Its time is up: the next thing heard, whatever it is, is its answer. */
  overdue = false;
  /** It found the lock taken, or others before it. */
  contended = false;
  readonly #since = wallMs();
  readonly #keeper: Keeper;
  #resolve: (outcome: Outcome) => void = () => undefined;
  #cancel: Cancel = () => undefined;
  #stopListening: () => void = () => undefined;

  constructor(wanted: Wanted, keeper: Keeper) {
    this.wanted = wanted;
    this.#keeper = keeper;
  }

  /** Whoever waited here before is told that another came in its place. */
  attach(wanted: Wanted, gone: AbortSignal | undefined): Promise<Outcome> {
    this.#end({ kind: 'superseded' });
    this.wanted = wanted;
    this.overdue = false;
    return new Promise((resolve) => {
      this.#resolve = resolve;
      this.#cancel = after(wanted.waitMs, () => {
        this.overdue = true;
        this.#keeper.overdue(this);
      });
      const leave = (): void => this.#keeper.gone(this);
      gone?.addEventListener('abort', leave, { once: true });
      this.#stopListening = () => gone?.removeEventListener('abort', leave);
      if (gone?.aborted) leave();
    });
  }

  get view(): WaiterView {
    const { owner, permits, capacity } = this.wanted;
    return { owner, permits, capacity, since: this.#since, woken: false };
  }

  settle(outcome: Outcome): void {
    this.#end(outcome);
  }

  #end(outcome: Outcome): void {
    this.#cancel();
    this.#stopListening();
    this.#resolve(outcome);
  }
}
