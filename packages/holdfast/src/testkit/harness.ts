/** What a store's test gives to the kit, and what it gets back. Tied to no test runner. */
import type { Store } from '../protocol/index.js';

/** Long enough for a busy machine. */
export const HINT_MS_MAX = 10_000;

export interface Harness {
  /** The store's name, for messages. */
  readonly name: string;
  /** Another connection to one and the same backing store. The kit closes what it opens. */
  open(): Promise<Store>;
  /**
   * Deletes the record of a key that was released, as the store's own cleaning up does in time. Where a test
   * cannot do that, the cases about it are left out.
   */
  forget?(key: string): Promise<void>;
  /** Makes the key's record one of a format that this library does not know yet. The cases about it need this. */
  spoil?(key: string): Promise<void>;
  /**
   * Where the store's time is an estimate: how long past its end something may still count as alive. The cases wait so
   * much longer. 0 unless told.
   */
  readonly doubtMs?: number;
  /**
   * How many stand in line for a key at most. Default `QUEUE_MAX`. Where it is given, a claim may also be turned away because
   * others changed the record in between.
   */
  readonly lineMax?: number;
  /** How long a hint may take to arrive. Default 10 s. */
  readonly hintMsMax?: number;
}

/** One promise of a store. `run` rejects with a plain error that says what was broken. */
export interface ConformanceCase {
  readonly name: string;
  run(): Promise<void>;
}
