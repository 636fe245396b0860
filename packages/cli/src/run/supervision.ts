/**
 * Runs a command under a lease. The command never outlives the lease, unless it cannot be killed. A command that ended
 * with 0 after its lease was lost is a failure, because another may have run at the same time.
 */
import { monotonicMs } from '../clock.js';
import { EXIT, Failure } from '../failure.js';
import { formatDuration } from '../printing/describe.js';
import { printable, type Terminal } from '../printing/terminal.js';
import type { Session } from '../session.js';
import { type Child, startChild } from './child.js';
import { type Held, keysOf, quoted } from './held.js';
import { guardLease, type LeaseGuard } from './lease-guard.js';
import { recordCommand } from './process-record.js';
import type { RunRequest } from './request.js';
import type { SignalRelay } from './signals.js';

/** How far the time measured here may be from the lease's own measure. */
const MAX_HOLD_TOLERANCE_MS = 1_000;

export interface Supervision {
  readonly session: Session;
  readonly held: Held;
  readonly request: RunRequest;
  readonly relay: SignalRelay;
  readonly terminal: Terminal;
  /** Called when the command has started. */
  readonly onStart: () => void;
}

/** The command's status. Rejects with a `Failure` when it could not be started or its lease was lost. */
export async function superviseCommand(supervision: Supervision): Promise<number> {
  const reasons = followRenewals(supervision);
  try {
    return await supervise(supervision, reasons);
  } finally {
    reasons.stop();
  }
}

async function supervise(supervision: Supervision, reasons: Reasons): Promise<number> {
  const { session, held, request, relay, terminal } = supervision;
  const recordStart = await recordCommand(session.store, held, terminal, relay.stopped);
  relay.stopped.throwIfAborted();
  held.assertHeld();
  const child = await startChild(request.commandLine, {
    ...process.env,
    // One line per key: keys have no line breaks.
    HOLDFAST_LOCK: keysOf(held).join('\n'),
    HOLDFAST_TOKEN: held.leases.map(({ token }) => token).join('\n'),
  });
  supervision.onStart();
  relay.passTo(child.signal);
  const guard = guardLease(held, request.graceMs, endable(supervision, child, reasons));
  const over = new AbortController();
  recordStart(child.pid, over.signal);
  const status = await child.ended;
  // Before the first `await`, so that the clocks are read at the moment at which the command ended.
  guard.stop();
  over.abort();
  const failure = lossOf(status, held, guard, reasons);
  // TERM ends a shell, and not the program that it runs.
  if (guard.intervened) child.kill();
  relay.passTo(null);
  if (failure) throw failure;
  return status;
}

function endable({ held, terminal }: Supervision, child: Child, reasons: Reasons) {
  return {
    terminate(remainingMs: number): void {
      // First of all, because the warning may fail or be slow.
      child.terminate();
      const why = reasons.ending();
      terminal.warn(
        `${quoted(keysOf(held))} ${why}; sending TERM to the command, KILL in ${formatDuration(remainingMs)}`,
      );
    },
    kill: child.kill,
  };
}

function lossOf(status: number, held: Held, guard: LeaseGuard, reasons: Reasons): Failure | null {
  const keys = keysOf(held);
  const key = quoted(held.held ? keys : keysLost(held));
  const which = keys.length === 1 ? { key: keys[0] } : { keys };
  const details = { code: 'lease-lost', ...which, commandStatus: status };
  const lost = held.held ? reasons.ending() : `was lost${reasons.loss()}`;
  if (guard.intervened) {
    return new Failure(EXIT.leaseLost, `${key} ${lost}; the command was ended (status ${status})`, details);
  }
  if (held.held) return null;
  const text = `${key} ${lost}, before the command ended (status ${status}); another may have run meanwhile`;
  return new Failure(EXIT.leaseLost, text, details);
}

function keysLost({ leases }: Held): readonly string[] {
  return leases.filter((lease) => !lease.held).map(({ key }) => key);
}

interface Reasons {
  /** Why the command is ended while its lease is still held. */
  readonly ending: () => string;
  /** The reason in brackets; empty when unknown. */
  readonly loss: () => string;
  readonly stop: () => void;
}

function followRenewals({ session: { locks }, held, request: { maxHoldMs } }: Supervision): Reasons {
  const sinceMs = monotonicMs();
  const isAtMaxHold = (): boolean =>
    monotonicMs() - sinceMs + held.remainingMs > maxHoldMs - MAX_HOLD_TOLERANCE_MS;
  const isOurs = (event: { readonly key: string; readonly token: number }): boolean =>
    held.leases.some(({ key, token }) => key === event.key && token === event.token);
  let cause: unknown;
  let reason = '';
  const stopJeopardy = locks.on('jeopardy', (event) => {
    if (isOurs(event)) cause = event.cause;
  });
  const stopLost = locks.on('lost', (event) => {
    if (isOurs(event)) reason = ` (${printable(event.message)})`;
  });
  return {
    ending() {
      if (isAtMaxHold()) return 'reached its --max-hold';
      return `could not be renewed${cause instanceof Error ? ` (${cause.message.replace(/\.$/, '')})` : ''}`;
    },
    loss: () => reason,
    stop() {
      stopJeopardy();
      stopLost();
    },
  };
}
