/**
 * How locks lie in a bucket: under which key, and as which bytes. A layout is pure; everything that is said to the
 * server is said by the register, whatever the layout.
 */
import { type Command, type State, UnsupportedError } from '../../protocol/index.js';
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
  /** By how much what it keeps of the record before ends later than it says; 0 unless told. */
  readonly lagMs?: number;
}

/** Under the key lies something that is no lock at all. Commands on it are refused; lists leave it out. */
export class NoLockError extends UnsupportedError {
  constructor(key: string) {
    super(
      `The bucket holds something that is no lock under the key of "${key}". Use a bucket of its own for locks. ` +
        'Nothing was changed.',
      { key },
    );
    this.name = 'UnsupportedError';
  }
}

export interface Layout {
  /** As options and messages call it. */
  readonly name: string;
  /** The bucket, unless told. */
  readonly bucket: string;
  /** Whether locks have a line of waiters, and hints. */
  readonly queue: boolean;
  /**
   * Whether the bucket is ours: created with our settings where missing, refused where they are wrong, and records of
   * released keys deleted in time. A bucket of other software is created plainly and left as it is.
   */
  readonly ownsBucket: boolean;
  /** The key in the bucket. Throws an `UnsupportedError` for a name that cannot be one. */
  kvKeyOf(key: string): string;
  /** The way back; null for a key of the bucket that is no lock of this layout. */
  keyOf(kvKey: string): string | null;
  /**
   * `now` is the latest it may be: what `next` was decided at. `seen` is what is replaced. Null where nothing may be
   * written though something was decided: a write would take the record from under other software's holder.
   */
  encode(next: State, seen: Found<number>, now: number): Message | null;
  /** Throws a `NoLockError` for what is none, an `UnsupportedError` for a record of a newer format. */
  decode(stored: Stored, key: string): { readonly state: State | null; readonly lateMs: number };
  /** Throws an `UnsupportedError` for what a record cannot carry. */
  check?(command: Command): void;
}
