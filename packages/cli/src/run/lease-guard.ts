/**
 * Ends a command before its lease ends: TERM a grace before the deadline, KILL at the deadline, or at once when the lease
 * is lost sooner. It reads the lease rather than events, so it works for every kind of failed renewal.
 */
import type { Lease } from 'holdfast';
import { after } from '../clock.js';

/** Timers stop while a machine sleeps: check often enough to notice soon after it wakes. */
const CHECK_MS_MAX = 1_000;

export interface Endable {
  terminate(remainingMs: number): void;
  kill(): void;
}

export interface LeaseGuard {
  /** Whether the command got TERM or KILL. */
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

  function check(): void {
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
    cancel = after(Math.min(Math.max(nextMs, 1), CHECK_MS_MAX), check);
  }

  lease.signal.addEventListener('abort', check);
  check();
  return {
    get intervened() {
      return stage !== 'watching';
    },
    stop() {
      stopped = true;
      cancel();
      lease.signal.removeEventListener('abort', check);
    },
  };
}
