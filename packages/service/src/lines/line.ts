/**
 * One a key: the waiters of this process stand in order, and only those in front ask the store: the first, and with a
 * shared first (a reader, a permit of many) up to sixteen like it behind it. A thousand waiters cost what one costs.
 */
import type { UnsupportedError } from 'holdfast';
import { type Busy, type Granted, type HoldId, sameHold, type WaiterView } from 'holdfast/protocol';
import { Contender, type Judge } from './contender.js';
import type { Desk } from './desk.js';
import type { Ear } from './ear.js';
import { type Keeper, Waiter } from './waiter.js';
import { areAlike, isShared, type Outcome, type Wanted } from './wanted.js';

const TOGETHER_MAX = 16;

export interface LineParts {
  readonly desk: Desk;
  readonly ear: Ear;
  /** Holders or waiters of this key may have changed. */
  readonly touched: () => void;
  /** Somebody here found the lock taken, or others before them. */
  readonly contended: () => void;
  /** Nobody stands here any more. */
  readonly emptied: () => void;
}

/** Who waits in this process, in order: those whom the store's own line shows too, and those behind them. */
export interface WaitersHere {
  readonly inStore: readonly WaiterView[];
  readonly behind: readonly WaiterView[];
}

export const NOBODY: WaitersHere = { inStore: [], behind: [] };

export class Line implements Judge, Keeper {
  readonly #parts: LineParts;
  readonly #waiters = new Set<Waiter>();
  /** The last answer, while it is the last thing known. */
  #heard: Busy | null = null;
  #failure: { readonly cause: unknown } | null = null;

  constructor(parts: LineParts) {
    this.#parts = parts;
  }

  enter(wanted: Wanted, gone: AbortSignal | undefined): Promise<Outcome> {
    const before = wanted.hold && this.#find(wanted.hold);
    if (before) return before.attach(wanted, gone);
    const waiter = new Waiter(wanted, this);
    if (this.#waiters.size > 0) this.#contended(waiter);
    this.#waiters.add(waiter);
    const outcome = waiter.attach(wanted, gone);
    this.#advance();
    this.#parts.touched();
    return outcome;
  }

  waiters(): WaitersHere {
    const inStore: WaiterView[] = [];
    const behind: WaiterView[] = [];
    for (const { contender, view } of this.#waiters) (contender?.inStore ? inStore : behind).push(view);
    return { inStore, behind };
  }

  hint(): void {
    for (const { contender } of [...this.#waiters]) {
      if (!contender) return;
      contender.hint();
    }
  }

  close(): void {
    // The last first: then nobody comes to the front, and asks the store, on the way out.
    for (const waiter of [...this.#waiters].reverse()) this.#leave(waiter, { kind: 'closing' });
  }

  granted(waiter: Waiter, hold: HoldId, reply: Granted, sentMs: number): void {
    this.#heard = null;
    this.#failure = null;
    waiter.contender = null;
    this.#leave(waiter, { kind: 'granted', hold, reply, sentMs });
  }

  busy(asked: Waiter, reply: Busy): void {
    this.#contended(asked);
    this.#heard = reply;
    this.#failure = null;
    for (const waiter of [...this.#waiters]) if (waiter.overdue) this.overdue(waiter);
  }

  unknown(_waiter: Waiter, cause: unknown): void {
    this.#heard = null;
    this.#failure = { cause };
    for (const waiter of [...this.#waiters]) if (waiter.overdue) this.overdue(waiter);
  }

  ended(waiter: Waiter): void {
    this.#leave(waiter, { kind: 'ended' });
  }

  refused(waiter: Waiter, error: UnsupportedError): void {
    this.#leave(waiter, { kind: 'refused', error });
  }

  /** Its time is up. A claim of its own that is on its way decides; otherwise the last thing known does. */
  overdue(waiter: Waiter): void {
    const { contender } = waiter;
    const isKnown = waiter.wanted.hold !== null;
    if (this.#failure) this.#leave(waiter, { kind: 'unknown', cause: this.#failure.cause });
    else if (!this.#heard) this.#askNow(contender);
    else if (contender?.asking) return;
    else if (isKnown && contender?.inDoubt) this.#leave(waiter, { kind: 'unknown', cause: null });
    else this.#leave(waiter, { kind: 'busy', reply: this.#heard });
  }

  /** Nothing is known since the last grant, and somebody's time is up: the next poll would be late. */
  #askNow(contender: Contender | null): void {
    const [first] = this.#waiters;
    (contender ?? first?.contender)?.hint();
  }

  gone(waiter: Waiter): void {
    this.#leave(waiter, { kind: 'gone' });
  }

  #contended(waiter: Waiter): void {
    if (!waiter.contended) this.#parts.contended();
    waiter.contended = true;
  }

  #find(hold: HoldId): Waiter | undefined {
    for (const waiter of this.#waiters) {
      const own = waiter.wanted.hold;
      if (own && sameHold(own, hold)) return waiter;
    }
    return undefined;
  }

  #leave(waiter: Waiter, outcome: Outcome): void {
    const { contender } = waiter;
    const next = contender && this.#behind(waiter);
    if (!this.#waiters.delete(waiter)) return;
    waiter.contender = null;
    waiter.settle(outcome);
    if (contender && !isBequeathed(contender, waiter, next)) contender.retire();
    this.#advance();
    this.#parts.touched();
    if (this.#waiters.size === 0) this.#parts.emptied();
  }

  #behind(waiter: Waiter): Waiter | null {
    let found = false;
    for (const other of this.#waiters) {
      if (found) return other;
      found = other === waiter;
    }
    return null;
  }

  /** Those in front ask. */
  #advance(): void {
    let place = 0;
    let first: Waiter | null = null;
    for (const waiter of this.#waiters) {
      first ??= waiter;
      const isLike = waiter === first || (isShared(first.wanted) && sameShare(first.wanted, waiter.wanted));
      if (!isLike || place === TOGETHER_MAX) return;
      waiter.contender ??= new Contender(waiter, this.#parts.desk, this.#parts.ear, this);
      place += 1;
    }
  }
}

/**
 * A waiter that gives up leaves its place in the store's line to the next one here, if that is like it. Where the next
 * one has a place of its own, nobody gets it: whoever stands further back would overtake.
 */
function isBequeathed(contender: Contender, { wanted }: Waiter, heir: Waiter | null): boolean {
  if (wanted.hold !== null || contender.asking || contender.inDoubt || !contender.inStore) return false;
  if (!heir || heir.contender || heir.wanted.hold !== null || !heir.wanted.queue) return false;
  if (!areAlike(heir.wanted, wanted)) return false;
  heir.contender = contender;
  contender.waiter = heir;
  return true;
}

function sameShare(a: Wanted, b: Wanted): boolean {
  return a.permits === b.permits && a.capacity === b.capacity;
}
