/** A simulated process with the real engine in it, and its line to the store. */
import type { Locks } from './library.js';
import type { Link } from './network.js';
import type { SimulatedProcess } from './process.js';
import type { Crew } from './profile.js';

export interface Resident {
  readonly process: SimulatedProcess;
  readonly link: Link;
  readonly locks: Locks;
  readonly crew: Crew;
  /** Its locks are being closed: nobody in it begins anything new. */
  isClosing: boolean;
  /** Its id in the holds it makes, known once it has sent something. */
  holdProcess: string;
  /** When each of its holds, by number, was first spoken of, and how long its machine had been suspended by then. */
  readonly holds: Map<number, { readonly sinceMs: number; readonly suspendedMs: number }>;
}
