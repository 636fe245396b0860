/** What a world is like: who lives in it, what they want, how bad the line is and what else goes wrong. */
import type { Variant } from './connection.js';
import type { Weather } from './network.js';

/** Of every key in a world. */
export const NAMESPACE = 'world';

/** A key as the store spells it. */
export const storeKeyOf = (name: string): string => `${NAMESPACE}/${name}`;

export type Range = readonly [number, number];

export interface KeySpec {
  readonly name: string;
  readonly kind: 'mutex' | 'semaphore' | 'readWrite';
  /** Of a semaphore. */
  readonly capacity?: number;
  /** How often it is chosen, against the others. */
  readonly weight: number;
}

/** How the workers of a process behave. Durations in milliseconds, spread over orders of magnitude. */
export interface Habits {
  readonly thinkMs: Range;
  readonly workMs: Range;
  readonly ttlMs: readonly [number, ...number[]];
  readonly waitMs: readonly [number, ...number[]];
  /** The share of calls that are `tryAcquire`, half of them without any wait; of the others half are `withLock`. */
  readonly tryShare: number;
  /** Of waiting calls: given up by their signal at a random moment. */
  readonly abortShare: number;
  readonly minHoldShare: number;
  readonly metadataShare: number;
  /** Without renewal: work longer than the ttl loses its lease. */
  readonly noRenewShare: number;
  /** Renewed by hand, half of these to so many times the ttl. */
  readonly renewShare: number;
  readonly stretch: Range;
  /** Of those without renewal: they work on past the end of their lease, until told. */
  readonly overstayShare: number;
  /** Of the leases taken one by one: handed off to another process when the work is done, which goes on with it. */
  readonly handoffShare: number;
  /** For all mutexes at once, or for any of them. */
  readonly groupShare: number;
  /** Of the calls on a read-write lock: those that write. */
  readonly writeShare: number;
}

export interface Crew {
  readonly processes: number;
  /** In each of them. */
  readonly workers: number;
  readonly habits: Habits;
}

/** The mean time between two of a kind, for each process; absent means never. */
export interface Mishaps {
  readonly pauseMs?: number;
  readonly suspendMs?: number;
  readonly crashMs?: number;
  readonly cutMs?: number;
  /** Shut down in order and started again. */
  readonly restartMs?: number;
  /** Slow lines: everything is answered later than it is awaited. */
  readonly lagMs?: number;
  readonly clockJumpMs?: number;
  /** For each key. */
  readonly evictionMs?: number;
  /** How long pauses and cut-offs last. */
  readonly lastMs: Range;
}

export interface Bounds {
  /** No caller that was willing to wait longer may wait longer than this. */
  readonly waitMs: number;
  /** Nor may the callers of any crew that got the lock have waited longer than this on average. */
  readonly meanWaitMs: number;
  /** How long a key may stand idle while somebody wants it: with no fault near, and at worst. */
  readonly idleMs: number;
  readonly idleMsWorst: number;
  /** What share of the time that somebody wants a key it may stand idle. */
  readonly idleShare: number;
}

export interface Profile {
  readonly name: string;
  readonly about: string;
  readonly durationMs: number;
  readonly variant: Variant;
  readonly keys: readonly [KeySpec, ...KeySpec[]];
  readonly crews: readonly Crew[];
  readonly weather: Weather;
  readonly mishaps: Mishaps;
  readonly bounds: Bounds;
  /** All callers of a key ask alike, so that any of them may take a place in line that another leaves. */
  readonly alike: boolean;
}
