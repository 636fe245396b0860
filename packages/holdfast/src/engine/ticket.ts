/** A request standing at the turnstile, until it is admitted, answered, or gives up. Settles once. */
import type { HolderView } from '../protocol/commands.js';
import type { HoldfastError } from '../protocol/errors.js';
import type { Appointment } from './agenda.js';
import type { Core } from './core.js';
import { acquireError } from './patience.js';
import type { Request } from './request.js';
import type { Turn } from './turn.js';

/** However short the wait, the store has this long to give a first answer. */
const ANSWER_MS = 2_000;

export type Admission =
  | { readonly kind: 'granted'; readonly turn: Turn }
  | {
      readonly kind: 'busy';
      readonly key: string;
      readonly holders: readonly HolderView[];
      /** Another lease of this process holds the key. */
      readonly heldHere: boolean;
    }
  | { readonly kind: 'failed'; readonly error: HoldfastError }
  | { readonly kind: 'aborted'; readonly reason: unknown };

/** What the turnstile does when a ticket's patience ends. */
export interface TicketKeeper {
  /** It waited as long as it wanted: answer it if an answer, or the reason why there is none, is known. */
  overdue(ticket: Ticket): void;
  /** It settled by itself, aborted or unanswered. */
  gone(ticket: Ticket): void;
}

export class Ticket implements Appointment {
  index = -1;
  readonly request: Request;
  readonly sinceMs: number;
  readonly admission: Promise<Admission>;
  /** It has waited as long as it wanted to, or never wanted to: the next answer is final. */
  overdue: boolean;
  contended = false;
  /** Who held the key when last heard of; null while the last thing known is that the store is silent. */
  seen: readonly HolderView[] | null = null;
  /** Its neighbours at the turnstile. */
  previous: Ticket | null = null;
  next: Ticket | null = null;
  inLine = false;
  readonly #core: Core;
  readonly #keeper: TicketKeeper;
  #settled = false;
  #resolve: (admission: Admission) => void = () => undefined;
  #failure: unknown;

  constructor(core: Core, request: Request, keeper: TicketKeeper) {
    this.#core = core;
    this.#keeper = keeper;
    this.request = request;
    this.sinceMs = core.clock.monotonicMs();
    this.overdue = request.waitMs <= 0;
    this.admission = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    const firstMs = this.overdue ? this.#answerByMs() : this.sinceMs + request.waitMs;
    core.agenda.schedule(this, firstMs, true);
    if (request.signal) core.aborts.add(request.signal, this);
  }

  settle(admission: Admission): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#core.agenda.cancel(this);
    if (this.request.signal) this.#core.aborts.remove(this.request.signal, this);
    // Local handover and known answers lead from one admission to the next without a command that could wait.
    if (this.#core.loop.isBlockedAfterShortSteps()) this.#resolveAfterTurn(admission);
    else this.#resolve(admission);
    if (admission.kind !== 'granted') this.#emitNotAcquired(admission);
  }

  /** Apart from `settle`, which would make an object for this function every time. */
  #resolveAfterTurn(admission: Admission): void {
    this.#core.loop.afterTurn(() => this.#resolve(admission));
  }

  #emitNotAcquired(admission: Exclude<Admission, { kind: 'granted' }>): void {
    this.#core.events.emit('not-acquired', this.request, () => ({
      reason: admission.kind,
      holders: admission.kind === 'busy' ? admission.holders.map(({ owner }) => owner) : [],
      waitedMs: this.#core.clock.monotonicMs() - this.sinceMs,
      cause: causeOf(admission),
    }));
  }

  /** The store's silence, or its last complaint: what to say if no answer comes at all. */
  noteFailure(cause: unknown): void {
    this.#failure = cause;
    this.seen = null;
  }

  #answerByMs(): number {
    const { waitMs, ttlMs } = this.request;
    return this.sinceMs + Math.max(waitMs, Math.min(ANSWER_MS, ttlMs));
  }

  onDue(): void {
    if (!this.overdue) {
      this.overdue = true;
      this.#keeper.overdue(this);
      if (this.#settled) return;
    }
    if (this.#core.clock.monotonicMs() < this.#answerByMs()) {
      this.#core.agenda.schedule(this, this.#answerByMs(), true);
      return;
    }
    this.fail(this.#failure);
    this.#keeper.gone(this);
  }

  /** The store did not answer, or could not be asked. */
  fail(cause: unknown): void {
    this.settle({ kind: 'failed', error: acquireError(this.request.name, cause) });
  }

  onAbort(): void {
    this.settle({ kind: 'aborted', reason: this.request.signal?.reason });
    this.#keeper.gone(this);
  }
}

function causeOf(admission: Exclude<Admission, { kind: 'granted' }>): unknown {
  switch (admission.kind) {
    case 'busy':
      return undefined;
    case 'failed':
      return admission.error;
    case 'aborted':
      return admission.reason;
  }
}
