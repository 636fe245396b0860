/** The interface that an engine has to implement, so that `CompareAndSwap` makes a store of it. */
import type { Claim, Command, State, Wake } from '../../protocol/index.js';

/** The record of a key. */
export interface Found<V> {
  /** Null when there is no record. */
  readonly state: State | null;
  /** Identifies exactly this record, or exactly its absence. */
  readonly version: V;
  /**
   * How much later than its writer assumed the record was written, by the engine's own timestamp: everything in it expires
   * that much later. 0 if the engine has no timestamps.
   */
  readonly lateMs: number;
}

/** The outcome of a conditional write. */
export type Written<V> =
  | {
      readonly kind: 'written';
      readonly version: V;
      /** At most that of `Found`. */
      readonly lateMs: number;
      /** The record that is there now, if it has more than was written. */
      readonly state?: State;
      /** The wake-ups were sent with the record. */
      readonly woken?: boolean;
    }
  /** Another record was there, and nothing was written. Null: the engine does not return it. */
  | { readonly kind: 'changed'; readonly found: Found<V> | null };

/** One record per key, read and replaced. A rejection means that the outcome is unknown. */
export interface Register<V> {
  /** The record of a key that was never used: assumed for a key that is not cached. */
  readonly absent: Found<V>;
  /** Whether the client may send a write twice by itself, and then report the outcome of the second. */
  readonly repeats?: boolean;
  /** The current record; never a stale copy. */
  read(key: string): Promise<Found<V>>;
  /**
   * Replaces the record if it is still `seen`. `now` is the time at which `next` was decided: the latest that it may be.
   * An engine may send `wakes` in the same step; otherwise `wake` is called afterwards.
   */
  write(key: string, next: State, seen: Found<V>, now: number, wakes?: readonly Wake[]): Promise<Written<V>>;
  /**
   * For engines with more conditions than "unchanged": grants this claim on a key that is absent; or that is free, with a
   * lower token than the holder's in `next`, a lower decision, and no mark of this hold. Keeps the marks.
   */
  take?(claim: Claim, next: State, now: number): Promise<Written<V>>;
  /** Sends wake-ups, after the write or the read that caused them. Never throws, never waits. */
  wake?(key: string, wakes: readonly Wake[]): void;
  /** Throws an `UnsupportedError` for a command that a record of this layout cannot store. */
  check?(command: Command): void;
}

/** The store's time is certainly between these two, in whole milliseconds. */
export interface Reading {
  readonly earliest: number;
  readonly latest: number;
}

/** The time of a store, as far as it is known. */
export interface StoreTime {
  /** Null when it is not known: never sampled, or the machine slept since. */
  reading(): Reading | null;
  /** Whether a reply of the last second carried the store's time. */
  isFresh(): boolean;
  /** How often the store's time contradicted an earlier one, because this machine or the store's clock stood still. */
  readonly jumps?: number;
  /** Asks the store. Rejects when it does not answer. */
  sample(): Promise<void>;
}
