/** What an engine with compare-and-swap has to offer so that `compareAndSwap` makes a store of it. */
import type { Claim, Command, State, Wake } from '../../protocol/index.js';

/** What is there for a key. */
export interface Found<V> {
  /** Null when there is nothing. */
  readonly state: State | null;
  /** Names exactly this record, or exactly its absence. */
  readonly version: V;
  /**
   * How much later than its writer thought the record was written, by the engine's own stamp: what it holds ends that
   * much later. 0 where the engine stamps nothing.
   */
  readonly lateMs: number;
}

export type Written<V> =
  | {
      readonly kind: 'written';
      readonly version: V;
      /** As in `Found`, at most. */
      readonly lateMs: number;
      /** What is there now, where that is more than what was written. */
      readonly state?: State;
    }
  /** Something else was there, and nothing was written. Null: the engine does not say what. */
  | { readonly kind: 'changed'; readonly found: Found<V> | null };

/** One record a key, read and replaced. A rejection means that nobody can know what happened. */
export interface Register<V> {
  /** What a key that was never used looks like: the first guess. */
  readonly absent: Found<V>;
  /** Whether the client may send a write twice by itself, and then tell how the second went. */
  readonly repeats?: boolean;
  /** What is there now; never a stale copy. */
  read(key: string): Promise<Found<V>>;
  /** Replaces the record if it is still `seen`. `now` is the latest it may be, the time that `next` was decided at. */
  write(key: string, next: State, seen: Found<V>, now: number): Promise<Written<V>>;
  /**
   * Where the engine can do better than "still as seen": grants this claim on a key that is absent; or that is free, with a
   * token lower than the holder's in `next`, a lower decision, and no mark of this hold. Keeps the marks that are there.
   */
  take?(claim: Claim, next: State, now: number): Promise<Written<V>>;
  /** Sends hints, after the write that caused them. Never throws, never waits. */
  wake?(key: string, wakes: readonly Wake[]): void;
  /** Throws an `UnsupportedError` for what a record of this layout cannot carry. */
  check?(command: Command): void;
}

/** The store's time, as well as it is known: it is surely between these two, whole milliseconds. */
export interface Reading {
  readonly earliest: number;
  readonly latest: number;
}

export interface StoreTime {
  /** Null when it is not known: never asked, or the machine slept since. */
  reading(): Reading | null;
  /** Whether the store was asked, or told its time with an answer, a moment ago. */
  isFresh(): boolean;
  /** How often the store told a time that contradicts what it told before: then this machine or the store's clock stood still. */
  readonly jumps?: number;
  /** Asks the store. Rejects when it does not answer. */
  sample(): Promise<void>;
}
