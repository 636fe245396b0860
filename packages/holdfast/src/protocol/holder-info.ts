/** A holder as users see it: in errors, events, and what `inspect` and `list` return. Types only. */

/** A JSON object, shown when the key is inspected. */
export type Metadata = { readonly [name: string]: unknown };

/** A holder of a key, as of the store's last reply. */
export interface HolderInfo {
  /** The holder's name, for people to read. */
  readonly owner: string;
  /** How many permits it has. An exclusive lock is 1 of 1. */
  readonly permits: number;
  /** The capacity that it named. */
  readonly capacity: number;
  /** Its fencing token: the first of its hold, if the process hands the lock over within itself. */
  readonly token: number;
  /** By the store's clock. */
  readonly acquiredAt: Date;
  /** By the store's clock, unless it is renewed. */
  readonly expiresAt: Date;
  /** As the holder gave it. Undefined also if other software stored no JSON object. */
  readonly metadata: Metadata | undefined;
  /** Released within its `minHold`: nobody gets the key before `expiresAt`. */
  readonly resting: boolean;
}
