/** The events of a `Locks` and their details. Types only. */
import type { LossReason } from './protocol/errors.js';
import type { HolderInfo } from './protocol/holder-info.js';

/** The part that all events have. */
interface EventBase {
  readonly key: string;
  readonly owner: string;
}

/** `call` numbers the calls of a process: it is the same in all events of one call, and no other has it. */
interface CallEvent extends EventBase {
  readonly call: number;
}

/** The events that `locks.on` subscribes to, with their details. */
export interface LockEvents {
  /** A call asks for a lease; once per key. Emitted in the async context of the caller. */
  acquiring: CallEvent;
  /** A lease began. `waitedMs` from the call; `handedOver` when it came from another lease of this process. */
  acquired: CallEvent & { readonly token: number; readonly waitedMs: number; readonly handedOver: boolean };
  /**
   * Others hold the key, and this caller waits. Once per call. `position`: its place in the store's queue from 0; null if
   * it has none of its own, such as behind other callers of this process.
   */
  waiting: CallEvent & {
    readonly holders: readonly HolderInfo[];
    readonly position: number | null;
    readonly waitedMs: number;
  };
  /**
   * A call ended without a lease. Every call ends in one `acquired` or one `not-acquired` per key of the call. `refused`:
   * held by others, and the caller does not wait; `timed-out`: held by others until its `wait` was over; `failed`: `cause`
   * is the error; `aborted`: `cause` is the reason of the caller's signal.
   */
  'not-acquired': CallEvent & {
    readonly reason: 'refused' | 'timed-out' | 'failed' | 'aborted';
    readonly holders: readonly HolderInfo[];
    readonly waitedMs: number;
    readonly cause: unknown;
  };
  /** `lateMs`: how long after its planned time the renewal was answered; 0 if that was before. */
  renewed: EventBase & { readonly token: number; readonly remainingMs: number; readonly lateMs: number };
  /** A renewal was not answered. It is retried until the deadline, `remainingMs` from now. */
  jeopardy: EventBase & { readonly token: number; readonly remainingMs: number; readonly cause: unknown };
  /** `message`: the reason in a sentence, with an operator's own words. */
  lost: EventBase & {
    readonly token: number;
    readonly heldMs: number;
    readonly reason: LossReason;
    readonly message: string;
  };
  /** A lease was released by its holder. */
  released: EventBase & { readonly token: number; readonly heldMs: number };
  /** Another process may continue the lease; it is over here. */
  'handed-off': EventBase & { readonly token: number; readonly heldMs: number };
  /** A lease that was handed off continues here. */
  adopted: EventBase & { readonly token: number; readonly remainingMs: number };
}

/** The names of the events. */
export type LockEventName = keyof LockEvents;
