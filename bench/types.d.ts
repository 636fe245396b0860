/** The shapes that the parts of the benchmark share. */

export type WorkloadName = 'sequential' | 'in-flight' | 'contended' | 'across' | 'held' | 'idle';

/** What runs under the lock. Undefined: nothing at all. */
export type Work = (() => Promise<void>) | undefined;

/** One lock library, opened in a process of its own. */
export interface Session {
  /** One acquire and one release of a key, with the work between them. */
  cycle(key: string, work: Work): () => Promise<void>;
  /** Holds a key, renewing it where the library can, until the session is closed. */
  hold?(key: string): Promise<unknown>;
  /** Like `hold`, but as somebody whom the waiters of this session do not share a process with. */
  holdApart?(key: string): Promise<unknown>;
  /** Waits for a key that is held; settles when the session is closed or never. */
  wait?(key: string): Promise<unknown>;
  /** How often the store was asked so far. */
  storeCalls?(): number;
  /** Releases that the library refused. */
  refusedReleases?(): number;
  close?(): Promise<void>;
}

export interface Contender {
  open(options: { readonly folder: string; readonly ttlMs: number }): Promise<Session>;
}

export interface Sizes {
  readonly repetitions: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  readonly ttlMs: number;
  readonly leases: number;
  readonly spreadMs: number;
  readonly heldMs: number;
  readonly waiters: number;
  readonly idleMs: number;
}

/** What a child is told to do. */
export interface Task {
  readonly contender: string;
  readonly workload: WorkloadName;
  readonly sizes: Sizes;
  readonly folder: string;
  /** When to begin, by the wall clock: processes that contend with each other begin together. */
  readonly startAt: number;
}

/** What a child measured: named numbers. */
export type Figures = Readonly<Record<string, number>>;

/** Of one contender in one workload: the median of each figure over the repetitions. */
export interface Outcome {
  readonly contender: string;
  readonly workload: WorkloadName;
  readonly figures: Figures;
  readonly repetitions: readonly Figures[];
}

export interface Verdict {
  readonly what: string;
  readonly target: string;
  readonly measured: string;
  readonly reached: boolean;
}

export interface Report {
  readonly quick: boolean;
  readonly machine: Readonly<Record<string, string | number>>;
  readonly versions: Readonly<Record<string, string>>;
  readonly sizes: Sizes;
  readonly outcomes: readonly Outcome[];
  readonly verdicts: readonly Verdict[];
  readonly failures: readonly string[];
}
