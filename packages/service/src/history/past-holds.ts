/**
 * Ended holds, in the order in which their end was seen; the oldest are dropped first. At most 100 per key stay, so that a
 * busy key does not displace the holds of all others.
 */
import { forgetOldest } from '../forget-oldest.js';

/** How certain each kind of end is: a more certain finding replaces a less certain one. */
const CERTAINTY = { unknown: 0, expired: 1, lost: 2, released: 3, evicted: 4 } as const;

export type EndKind = keyof typeof CERTAINTY;
export const END_KINDS = Object.keys(CERTAINTY) as readonly EndKind[];

export interface End {
  readonly kind: EndKind;
  /** By the store's clock. */
  readonly at: number;
  /** The principal that evicted, and its reason. */
  readonly by: string | null;
  readonly reason: string | null;
}

/** A hold, as far as this service knows it. */
export interface KnownHold {
  readonly key: string;
  /** Null if only its release went through this service. */
  token: number | null;
  /** The last token of its block. */
  tokenLast: number;
  owner: string | null;
  permits: number | null;
  capacity: number | null;
  acquiredAt: number | null;
  expiresAt: number;
  waitedMs: number | null;
  /** Whether its grant or release was a request to this service; otherwise it was seen in the store. */
  readonly seen: 'requests' | 'store';
  /** When it expires, by the monotonic clock of this process. */
  dueMs: number;
}

export interface PastHold extends KnownHold {
  end: End;
  /** Rises with every hold that ends. */
  readonly number: number;
  readonly endedMs: number;
}

const HOLDS_A_KEY = 100;

export class PastHolds {
  readonly #max: number;
  readonly #all = new Set<PastHold>();
  readonly #byKey = new Map<string, Set<PastHold>>();
  #number = 0;

  constructor(max: number) {
    this.#max = max;
  }

  add(hold: KnownHold, end: End, endedMs: number): PastHold {
    this.#number += 1;
    const past = pastHold(hold, end, this.#number, endedMs);
    const own = this.#byKey.get(hold.key);
    if (own) own.add(past);
    else this.#byKey.set(hold.key, new Set([past]));
    this.#all.add(past);
    if (own) forgetOldest(own, HOLDS_A_KEY, this.#forget);
    forgetOldest(this.#all, this.#max, this.#forget);
    return past;
  }

  delete(past: PastHold): void {
    this.#all.delete(past);
    const own = this.#byKey.get(past.key);
    if (own?.delete(past) && own.size === 0) this.#byKey.delete(past.key);
  }

  has(past: PastHold): boolean {
    return this.#all.has(past);
  }

  deleteBefore(ms: number): void {
    for (const past of this.#all) {
      if (past.endedMs >= ms) return;
      this.delete(past);
    }
  }

  of(key: string): Iterable<PastHold> {
    return this.#byKey.get(key) ?? [];
  }

  /** The newest first. */
  newest(key?: string): readonly PastHold[] {
    return [...(key === undefined ? this.#all : this.of(key))].reverse();
  }

  readonly #forget = (past: PastHold): void => this.delete(past);
}

/** Made member by member: every release makes one, and a spread takes several times as long. */
function pastHold(hold: KnownHold, end: End, number: number, endedMs: number): PastHold {
  return {
    key: hold.key,
    token: hold.token,
    tokenLast: hold.tokenLast,
    owner: hold.owner,
    permits: hold.permits,
    capacity: hold.capacity,
    acquiredAt: hold.acquiredAt,
    expiresAt: hold.expiresAt,
    waitedMs: hold.waitedMs,
    seen: hold.seen,
    dueMs: hold.dueMs,
    end,
    number,
    endedMs,
  };
}

/** Whether a finding is better than the known end. */
export function isBetter(end: End, known: End): boolean {
  if (end.kind === known.kind) return end.by !== null && known.by === null;
  return CERTAINTY[end.kind] > CERTAINTY[known.kind];
}
