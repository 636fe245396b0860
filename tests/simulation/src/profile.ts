/** The description of one kind of simulation: processes, workloads, network, faults, and the bounds to keep. */
import type { Variant } from './connection.js';
import type { NetworkConditions } from './network.js';

/** The namespace of every key. */
export const NAMESPACE = 'simulation';

/** A key with its namespace, as the store has it. */
export const storeKeyOf = (name: string): string => `${NAMESPACE}/${name}`;

export type Range = readonly [number, number];

export interface KeySpec {
  readonly name: string;
  readonly kind: 'mutex' | 'semaphore' | 'readWrite';
  /** For a semaphore. */
  readonly capacity?: number;
  /** How often it is chosen, relative to the others. */
  readonly weight: number;
}

/** How the workers of a process behave. Durations are drawn evenly over orders of magnitude. */
export interface Behaviour {
  readonly thinkMs: Range;
  readonly workMs: Range;
  readonly ttlMs: readonly [number, ...number[]];
  readonly waitMs: readonly [number, ...number[]];
  /** The share of `tryAcquire` calls, half of them without wait; of the others, half are `withLock`. */
  readonly tryShare: number;
  /** The share of waiting calls that are aborted at a random moment. */
  readonly abortShare: number;
  readonly minHoldShare: number;
  readonly metadataShare: number;
  /** Without renewal, work longer than the ttl loses its lease. */
  readonly noRenewShare: number;
  /** Renewed by the user; half of these to a multiple of the ttl. */
  readonly renewShare: number;
  readonly stretch: Range;
  /** The share of leases without renewal whose user works on past their end. */
  readonly overstayShare: number;
  /** The share of single leases that are handed off to another process after the work. */
  readonly handoffShare: number;
  /** The share of single leases with a `maxHold`, of so many times the ttl; their work takes up to twice as long. */
  readonly maxHoldShare: number;
  readonly maxHold: Range;
  /** The share of `withLock` calls whose work calls `withLock` again, reentrant. */
  readonly nestedShare: number;
  /** The share of calls for all mutexes at once, or for any of them. */
  readonly groupShare: number;
  /** The share of write calls on a read-write lock. */
  readonly writeShare: number;
}

export interface Workload {
  readonly processes: number;
  /** Per process. */
  readonly workers: number;
  /** The processes were given only so many servers of the quorum, and have to be refused. Default all. */
  readonly servers?: number;
  readonly behaviour: Behaviour;
}

/** The mean time between two faults of a kind, per process; absent means never. */
export interface FaultIntervals {
  readonly pauseMs?: number;
  readonly suspendMs?: number;
  readonly crashMs?: number;
  readonly cutMs?: number;
  /** An orderly shutdown and a new process. */
  readonly restartMs?: number;
  /** A slow link: replies arrive later than they are awaited. */
  readonly lagMs?: number;
  readonly clockJumpMs?: number;
  /** Per key. */
  readonly evictionMs?: number;
  /** How long pauses and cut-offs last. */
  readonly lastMs: Range;
}

export interface Bounds {
  /** The longest wait of a caller that was willing to wait longer. */
  readonly waitMs: number;
  /** The longest mean wait of the granted calls of any workload. */
  readonly meanWaitMs: number;
  /** How long a key may be idle while a caller wants it: without a fault nearby, and at worst. */
  readonly idleMs: number;
  readonly idleMsWorst: number;
  /** The share of wanted time in which a key may be idle. */
  readonly idleShare: number;
}

/** The servers of a quorum, and the mean time between two faults of each; absent means never. */
export interface Members {
  readonly count: number;
  /** How far their clocks may be from the simulation's. */
  readonly apartMs: number;
  readonly pauseMs?: number;
  /** Down for a while; what it has accepted and promised stays. */
  readonly crashMs?: number;
  /** Cut off from one process, per pair of both. */
  readonly cutMs?: number;
  /** How long pauses, crashes and cut-offs last. */
  readonly lastMs: Range;
}

export interface Profile {
  readonly name: string;
  readonly about: string;
  readonly durationMs: number;
  readonly variant: Variant;
  /** The store is a quorum of servers, instead of one. */
  readonly members?: Members;
  readonly keys: readonly [KeySpec, ...KeySpec[]];
  readonly workloads: readonly Workload[];
  readonly network: NetworkConditions;
  readonly faultIntervals: FaultIntervals;
  /** How fast or slow the clocks of processes run. Default 0.9 %: just inside the margin of a holder. */
  readonly driftShare?: number;
  readonly bounds: Bounds;
  /** All callers of a key make like requests, so that any of them may take over a place in the queue. */
  readonly alike: boolean;
}
