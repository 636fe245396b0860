/** A simulated process that runs the real engine, with its connection to the store. */
import type { Locks } from './library.js';
import type { Link } from './network.js';
import type { SimulatedProcess } from './process.js';
import type { Workload } from './profile.js';

export interface Client {
  readonly process: SimulatedProcess;
  readonly link: Link;
  readonly locks: Locks;
  readonly workload: Workload;
  /** The servers of a quorum that it cannot reach now. */
  readonly unreachable: Set<number>;
  /** `close` was called on its locks: its workers begin nothing new. */
  isClosing: boolean;
  /** The process id in its holds; empty until it has sent a claim. */
  holdProcess: string;
  /** Per hold number: when its first claim was sent, and how long the machine had been suspended by then. */
  readonly holds: Map<number, { readonly sinceMs: number; readonly suspendedMs: number }>;
}
