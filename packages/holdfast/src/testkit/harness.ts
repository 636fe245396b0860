/** The interface between a store's test and the kit. Independent of test runners. */
import type { Store } from '../protocol/index.js';

/** Long enough for a busy machine. */
export const HINT_MS_MAX = 10_000;

/** How the test kit opens and controls the store under test. */
export interface Harness {
  /** The store's name, for messages. */
  readonly name: string;
  /** Opens another connection to the same backing store. The kit closes it. */
  open(): Promise<Store>;
  /**
   * Deletes the record of a released key, as the store's own clean-up does in time. Without it, the cases about that are
   * left out.
   */
  forget?(key: string): Promise<void>;
  /** Changes the record of a key to a format that this library does not know. Without it, the cases about that are left out. */
  spoil?(key: string): Promise<void>;
  /**
   * For a store with an estimated clock: how long after its expiry a hold may still count as alive. The cases wait that
   * much longer. Default 0.
   */
  readonly doubtMs?: number;
  /**
   * The longest queue of a key. Default `QUEUE_MAX`. Where it is given, a claim may also be refused a place because the
   * record changed meanwhile.
   */
  readonly lineMax?: number;
  /**
   * For a store whose records have one holder: cases that need several holders of a key are left out, and the model
   * claims plain locks only. Default false.
   */
  readonly exclusive?: boolean;
  /** How long a wake-up may take to arrive. Default 10 s. */
  readonly hintMsMax?: number;
}

/** One test case. `run` rejects with an error that says what the store did wrong. */
export interface ConformanceCase {
  readonly name: string;
  run(): Promise<void>;
}
