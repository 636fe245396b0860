/** Commands to a store about one key, and their replies. */
import type { HoldId } from './state.js';

/** Asks for a lock, under a hold that the caller made. */
export interface Claim {
  readonly kind: 'claim';
  readonly key: string;
  readonly hold: HoldId;
  readonly owner: string;
  readonly permits: number;
  readonly capacity: number;
  readonly ttlMs: number;
  /** Queue when there is no room. */
  readonly queue: boolean;
  /** Where wake-ups for this hold go; null when its process cannot listen. */
  readonly inbox: string | null;
  readonly metadata: string | null;
}

/** Extends a hold that still holds the key. */
export interface Renew {
  readonly kind: 'renew';
  readonly key: string;
  readonly hold: HoldId;
  readonly ttlMs: number;
  /** Reserve a fresh block of tokens too. */
  readonly block: boolean;
  /** Instead of `ttlMs`: add `ms` to exactly this expiry, so that a repeated command adds once. */
  readonly added?: { readonly ms: number; readonly expiresAt: number };
}

/** Ends a hold, or takes its waiter out of the queue. */
export interface Release {
  readonly kind: 'release';
  readonly key: string;
  readonly hold: HoldId;
  /** Keep the permits until this long after the grant; 0 for a plain release or a grant never used. */
  readonly minHoldMs: number;
  /**
   * The last token that was used of an exclusive hold. Only for `apply.atOnce`: a store that forgets the key may give the
   * rest of the block to the next hold.
   */
  readonly tokenUsed?: number | undefined;
}

/** Ends holds of others: an operator sends it. */
export interface Evict {
  readonly kind: 'evict';
  readonly key: string;
  /**
   * Ends the holds that have a token from `fromToken` to `upToToken`, which the operator saw, so that a repetition ends no
   * later hold. An exclusive hold has every token that was reserved since its grant. Default 0: no lower bound.
   */
  readonly fromToken?: number;
  readonly upToToken: number;
  /** For the evicted holders, and for logs. Default null. */
  readonly reason?: string | null;
}

/** A command that a store applies. */
export type Command = Claim | Renew | Release | Evict;

/** A holder as anybody may see it, without its hold. */
export interface HolderView {
  readonly owner: string;
  readonly permits: number;
  readonly capacity: number;
  readonly token: number;
  readonly acquiredAt: number;
  readonly expiresAt: number;
  readonly metadata: string | null;
  /** Released within its `minHold`: the permits are kept until `expiresAt`, for nobody. */
  readonly resting: boolean;
}

/** A waiter as anybody may see it, without its hold. */
export interface WaiterView {
  readonly owner: string;
  readonly permits: number;
  readonly capacity: number;
  readonly since: number;
  /** It was woken for its turn, and room is kept for it. */
  readonly woken: boolean;
}

interface Decided {
  /** The store's time at which this was decided. */
  readonly now: number;
  /** If the store's time is only an estimate: how much earlier than `now` it may have been. */
  readonly doubtMs?: number;
  /** The number of the key's last decision that changed something. Times tie, these numbers do not. */
  readonly decision: number;
  /** Waiters of other processes are in the queue. */
  readonly othersWait: boolean;
}

/** The reply to a claim: the hold holds the key. */
export interface Granted extends Decided {
  readonly kind: 'granted';
  /** The tokens of this grant: the first, and the last of the block reserved with it. */
  readonly token: number;
  readonly tokenLast: number;
  readonly acquiredAt: number;
  readonly expiresAt: number;
}

/** The reply to a claim: others hold the key. */
export interface Busy extends Decided {
  readonly kind: 'busy';
  readonly holders: readonly HolderView[];
  /** How soon a hold or a waiter before this claimant may be over. */
  readonly freeInMs: number;
  /** Place in the queue from 0; null when not in it. */
  readonly position: number | null;
}

/** The hold has ended already; claim again under a new number. */
export interface Withdrawn extends Decided {
  readonly kind: 'withdrawn';
}

/** The reply to a renewal that extended the hold. */
export interface Renewed extends Decided {
  readonly kind: 'renewed';
  readonly expiresAt: number;
  /** The fresh block, if the command wanted one. */
  readonly block: { readonly token: number; readonly tokenLast: number } | null;
}

/** The reply to a renewal: the hold no longer holds the key. */
export interface Lost extends Decided {
  readonly kind: 'lost';
  /** An operator ended it, and may have said why. Absent when it ended otherwise, or the store no longer knows. */
  readonly evicted?: { readonly reason: string | null };
}

/** The reply to a release. */
export interface Released extends Decided {
  readonly kind: 'released';
  /** Whether it held the key until now. */
  readonly held: boolean;
}

/** The reply to an eviction. */
export interface Evicted extends Decided {
  readonly kind: 'evicted';
  readonly count: number;
}

/** The reply of a store to a command. */
export type Reply = Granted | Busy | Withdrawn | Renewed | Lost | Released | Evicted;

/** Why an inbox is woken: it is its turn, others wait for its hold, or its hold was evicted. */
export type Why = 'turn' | 'waiting' | 'evicted';

/** A wake-up to be sent to an inbox. */
export interface Wake {
  readonly inbox: string;
  readonly why: Why;
}
