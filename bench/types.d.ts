/** The shapes that the parts of the benchmark share. */

export type EngineName =
  | 'memory'
  | 'sqlite'
  | 'redis'
  | 'quorum'
  | 'redis-served'
  | 'postgres-served'
  | 'postgres'
  | 'distributed-locks'
  | 'lock-service-central'
  | 'mysql'
  | 'dynamodb'
  | 'firestore'
  | 'nats'
  | 'etcd'
  | 'service'
  | 'http';

export type WorkloadName =
  | 'sequential'
  | 'in-flight'
  | 'fresh'
  | 'fresh-in-flight'
  | 'many-keys'
  | 'granted'
  | 'refused'
  | 'contended'
  | 'across'
  | 'handover'
  | 'held'
  | 'idle'
  | 'killed';

/** What is compared on one engine. */
export interface Family {
  readonly engine: EngineName;
  readonly title: string;
  readonly subject: string;
  readonly peers: readonly string[];
  /** Written by hand: they can do little, and run only where nobody contends, unless they are patient. */
  readonly minimums: readonly string[];
  /** The peers that hang where processes meet, and are left out there. */
  readonly alone: readonly string[];
  /** Those of the minimums that look again when a key is held: where it is contended, they stand beside the peers. */
  readonly patient: readonly string[];
  /** The peers that hold leases, and those that wait idly, for comparison. */
  readonly holding: readonly string[];
  readonly idling: readonly string[];
  readonly reach: 'process' | 'machine' | 'network';
  /** What is not run here although its reach is far enough. */
  readonly without: readonly WorkloadName[];
  /** Its figures are not those of the engine that people will use, and say so wherever they stand. */
  readonly emulator: boolean;
}

/** What runs under the lock. Undefined: nothing at all. */
/** `isHeld` is what the library says of its lease at that moment; always true where it says nothing. */
export type Work = ((isHeld?: () => boolean) => Promise<void>) | undefined;

/** One lock library, opened in a process of its own. */
export interface Session {
  /** One acquire and one release of a key, with the work between them. */
  cycle(key: string, work: Work): () => Promise<void>;
  /** Holds a key, renewing it where the library can, until the session is closed. */
  hold?(key: string): Promise<unknown>;
  /** Like `hold`, but as somebody whom the waiters of this session do not share a process with. */
  holdApart?(key: string): Promise<unknown>;
  /** Asks once for a key that somebody else holds. */
  tryHeld?(key: string): Promise<unknown>;
  /** Waits for a key that is held; settles when the key is got, when the session is closed, or never. */
  wait?(key: string): Promise<unknown>;
  /** How often the store was asked so far. */
  storeCalls?(): number;
  /** Releases that the library refused. */
  refusedReleases?(): number;
  close?(): Promise<void>;
}

export interface Place {
  /** A fresh one a run. */
  readonly folder: string;
  /** Of the server: a fresh database a run. Several, with commas between them, of a quorum. Empty where the engine has none. */
  readonly url: string;
}

export interface Contender {
  /** What has to be there before its processes start: tables. */
  prepare?(place: Place): Promise<void>;
  /** Adds so many keys that nobody uses during the measurement. */
  fill?(place: Place, keys: number): Promise<void>;
  open(options: Place & { readonly ttlMs: number }): Promise<Session>;
}

export interface Sizes {
  readonly repetitions: number;
  readonly warmUpMs: number;
  /** For as many cycles, but not for longer than `warmUpMsMax`, where a process measures alone. */
  readonly warmUpCycles: number;
  readonly warmUpMsMax: number;
  readonly measureMs: number;
  readonly inFlight: number;
  /** That are there besides, where there are many. */
  readonly otherKeys: number;
  readonly ttlMs: number;
  readonly leases: number;
  readonly spreadMs: number;
  readonly heldMs: number;
  readonly waiters: number;
  readonly idleMs: number;
  /** Longer: between processes turns come in bursts. */
  readonly acrossMs: number;
  readonly handoverMs: number;
  /** How many locks lose their holder to a kill. */
  readonly trials: number;
  readonly killedTtlMs: number;
  /** How many meet, and how many are killed, each at another moment between two renewals. */
  readonly processes: number;
}

export interface Planned {
  readonly engine: EngineName;
  readonly emulator: boolean;
  readonly workload: WorkloadName;
  readonly contender: string;
  readonly sizes: Sizes;
}

/** What a child is told to do. */
export interface Task extends Place {
  readonly contender: string;
  readonly workload: WorkloadName;
  readonly sizes: Sizes;
  /** When to begin, by the wall clock: processes that contend with each other begin together. */
  readonly startAt: number;
  /** The keys of a holder that will be killed, or of those who wait for it. */
  readonly keys?: readonly string[];
  readonly part?: 'holder' | 'waiter';
}

/** One turn at a key, in milliseconds of the machine's monotonic clock, which its processes share. */
export interface Turn {
  readonly askedAt: number;
  readonly grantedAt: number;
  readonly releasedAt: number;
}

/** What a child measured: named numbers. */
export type Figures = Readonly<Record<string, number>>;

/** What a child sends when it is done. What is not a figure is for its parent to make figures of. */
export interface Answer {
  readonly figures: Figures;
  /** Cycles of each contender. */
  readonly counts?: readonly number[];
  readonly turns?: readonly Turn[];
}

/** Of one contender in one workload: the median of each figure over the repetitions. */
export interface Outcome {
  readonly engine: EngineName;
  readonly emulator: boolean;
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
