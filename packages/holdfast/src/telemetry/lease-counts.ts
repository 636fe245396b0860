/** Turns the events of one `Locks` into what metrics count, for every metrics library the same. */
import type { LockEventName, LockEvents, Locks } from '../api.js';
import { InvalidArgumentError, type LossReason } from '../protocol/errors.js';
import { show } from '../protocol/names.js';

export type AcquireOutcome = 'acquired' | LockEvents['not-acquired']['reason'];
export type HoldEnd = 'released' | 'lost' | 'handed-off';

/** A metrics library, as far as leases need one. */
export interface Counts {
  onAcquireEnded(key: string, outcome: AcquireOutcome, seconds: number): void;
  /** The call found the lock held by others. Once per call. */
  onContended(key: string): void;
  /** So many calls more, or less, wait. */
  onWaiting(key: string, change: 1 | -1): void;
  /** So many leases more, or less, are held here. */
  onHeld(key: string, change: 1 | -1): void;
  onHoldEnded(key: string, end: HoldEnd, seconds: number): void;
  onLost(key: string, reason: LossReason): void;
  onJeopardy(key: string): void;
  onRenewed(key: string, lateSeconds: number): void;
}

/** Names a lease among those of one `Locks`: tokens of a key never repeat. */
export const leaseId = ({ key, token }: { readonly key: string; readonly token: number }): string =>
  `${token} ${key}`;

/** `caller`: the function that was called with them. */
export function checkLocks(locks: Locks, caller: string): void {
  if (typeof locks?.on === 'function') return;
  throw new InvalidArgumentError(
    `${caller} needs locks, such as createLocks(store), and not ${show(locks)}.`,
  );
}

/** Subscribes; the functions returned unsubscribe. */
export function listen(
  locks: Locks,
  listeners: { readonly [N in LockEventName]?: (detail: LockEvents[N]) => void },
): (() => void)[] {
  return (Object.keys(listeners) as LockEventName[]).map((name) =>
    locks.on(name, listeners[name] as (detail: LockEvents[LockEventName]) => void),
  );
}

/** Counts until the function returned is called. That takes back what still waits or is held: gauges go to 0. */
export function countLeases(locks: Locks, counts: Counts): () => void {
  const waiting = new Map<number, string>();
  const held = new Map<string, string>();

  const begin = (lease: { readonly key: string; readonly token: number }): void => {
    held.set(leaseId(lease), lease.key);
    counts.onHeld(lease.key, 1);
  };
  /** A lease that was lost before its adoption was told of was never counted. */
  const forget = (id: string, key: string): void => {
    if (held.delete(id)) counts.onHeld(key, -1);
  };
  const end = (how: HoldEnd, detail: LockEvents['released']): void => {
    forget(leaseId(detail), detail.key);
    counts.onHoldEnded(detail.key, how, detail.heldMs / 1_000);
  };
  const stopWaiting = (call: number, key: string): boolean => {
    const waited = waiting.delete(call);
    if (waited) counts.onWaiting(key, -1);
    return waited;
  };

  for (const lease of locks.leases()) begin(lease);
  const stops = listen(locks, {
    waiting({ key, call }) {
      waiting.set(call, key);
      counts.onWaiting(key, 1);
      counts.onContended(key);
    },
    acquired(detail) {
      stopWaiting(detail.call, detail.key);
      counts.onAcquireEnded(detail.key, 'acquired', detail.waitedMs / 1_000);
      begin(detail);
    },
    'not-acquired'({ key, call, reason, waitedMs }) {
      if (!stopWaiting(call, key) && reason === 'refused') counts.onContended(key);
      counts.onAcquireEnded(key, reason, waitedMs / 1_000);
    },
    adopted: begin,
    released: (detail) => end('released', detail),
    'handed-off': (detail) => end('handed-off', detail),
    lost(detail) {
      end('lost', detail);
      counts.onLost(detail.key, detail.reason);
    },
    jeopardy: ({ key }) => counts.onJeopardy(key),
    renewed: ({ key, lateMs }) => counts.onRenewed(key, lateMs / 1_000),
  });
  return () => {
    for (const stop of stops.splice(0)) stop();
    for (const [call, key] of waiting) stopWaiting(call, key);
    for (const [id, key] of held) forget(id, key);
  };
}
