/** How locks are stored in a bucket: under which key, and as which bytes. A layout is pure; the register talks to the server. */
import type { Command, State } from '../../protocol/index.js';
import { NotALockError } from '../compare-and-swap/records.js';
import type { Found } from '../compare-and-swap/register.js';

/** A message of the bucket, as the server stored it. */
export interface Stored {
  readonly payload: string;
  /** When the server stored it, by its clock, in whole milliseconds (rounded down). */
  readonly storedAt: number;
  /** The `KV-Operation` header: a marker of a deletion, or null for a value. */
  readonly operation: 'DEL' | 'PURGE' | null;
  /** The revision: the message's sequence. */
  readonly revision: number;
}

/** A message to be stored. */
export interface Message {
  readonly payload: string;
  /** 'DEL' makes it what tools and other clients take for a deleted key. */
  readonly operation: 'DEL' | null;
  /** How much later the holds kept from the record before expire than it says. Default 0. */
  readonly lagMs?: number;
}

export function notALock(key: string): NotALockError {
  return new NotALockError(
    `The bucket has a value that is not a lock under the key of "${key}". Use a separate bucket for locks. ` +
      'Nothing was changed.',
    key,
  );
}

/** Other software whose bucket the store can use. `holdfast/nats/layouts` exports all that there are. */
export interface NatsLayout {
  readonly store: 'nats';
  /** As in URLs: `?layout=cloops`. */
  readonly name: string;
}

export type ForeignLayout = Layout & NatsLayout;

export interface Layout {
  /** The name in options and messages. */
  readonly name: string;
  /** The default bucket. */
  readonly bucket: string;
  /** Whether locks have a queue of waiters, and wake-ups. */
  readonly queue: boolean;
  /**
   * Whether the bucket belongs to Holdfast: created with our settings, refused where they are wrong, and records of
   * released keys deleted. A bucket of other software is created with plain settings and left as it is.
   */
  readonly ownsBucket: boolean;
  /** The key in the bucket. Throws an `UnsupportedError` for a name that cannot be one. */
  kvKeyOf(key: string): string;
  /** The reverse; null for a key of the bucket that is not a lock of this layout. */
  keyOf(kvKey: string): string | null;
  /**
   * `now`: the time that `next` was decided at, the latest it may be. `seen`: the record that is replaced. Null where
   * nothing may be written: the write would change the revision that other software's holder goes by.
   */
  encode(next: State, seen: Found<number>, now: number): Message | null;
  /** Throws a `NotALockError`, or an `UnsupportedError` for a record of a newer format. */
  decode(stored: Stored, key: string): { readonly state: State | null; readonly lateMs: number };
  /** Throws an `UnsupportedError` for a command that a record cannot store. */
  check?(command: Command): void;
}
