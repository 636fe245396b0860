/**
 * Ends a command before its lease does: TERM a grace before the deadline, KILL at it, or at once when the lease is lost
 * sooner. It asks the lease and no event, so that it works however the renewals fail.
 */
import type { Lease } from 'holdfast';
import { after } from './clock.js';

/** Timers stand still while a machine sleeps: look often enough to notice soon after it wakes. */
const LOOK_MS_MAX = 1_000;

export interface Endable {
  terminate(remainingMs: number): void;
  kill(): void;
}

export interface LeaseGuard {
  /** Whether the command was told to end. */
  readonly intervened: boolean;
  stop(): void;
}

export function guardLease(
  lease: Pick<Lease, 'held' | 'remainingMs' | 'signal'>,
  graceMs: number,
  target: Endable,
): LeaseGuard {
  let stage: 'watching' | 'terminated' | 'killed' = 'watching';
  let stopped = false;
  let cancel = (): void => undefined;

  function look(): void {
    cancel();
    if (stopped || stage === 'killed') return;
    const remainingMs = lease.held ? lease.remainingMs : 0;
    if (remainingMs <= 0) {
      stage = 'killed';
      target.kill();
      return;
    }
    if (stage === 'watching' && remainingMs <= graceMs) {
      stage = 'terminated';
      target.terminate(remainingMs);
    }
    const nextMs = stage === 'watching' ? remainingMs - graceMs : remainingMs;
    cancel = after(Math.min(Math.max(nextMs, 1), LOOK_MS_MAX), look);
  }

  lease.signal.addEventListener('abort', look);
  look();
  return {
    get intervened() {
      return stage !== 'watching';
    },
    stop() {
      stopped = true;
      cancel();
      lease.signal.removeEventListener('abort', look);
    },
  };
}
