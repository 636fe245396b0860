/**
 * A command and the lease that it runs under. The command never outlives the lease, unless it cannot be killed;
 * a command that ended well after its lease was lost is no success, as another may have run meanwhile.
 */
import type { Lease, Locks } from 'holdfast';
import { type Child, prepareChild } from './child.js';
import { formatDuration } from './duration.js';
import { EXIT, Failure } from './exit.js';
import { guardLease, type LeaseGuard } from './lease-guard.js';
import { printable, type Terminal } from './output.js';
import { announceCommand } from './process-register.js';
import type { RunRequest } from './run-request.js';
import type { Session } from './session.js';
import type { SignalRelay } from './signals.js';

export interface Supervision {
  readonly session: Session;
  readonly lease: Lease;
  readonly request: RunRequest;
  readonly relay: SignalRelay;
  readonly terminal: Terminal;
  /** Called once the command runs. */
  readonly onStart: () => void;
}

/** The command's status. Rejects with a `Failure` when it could not be started or its lease was lost. */
export async function superviseCommand(supervision: Supervision): Promise<number> {
  const { session, lease, request, relay, terminal } = supervision;
  const trouble = noteTrouble(session.locks, lease);
  const [start, noteStart] = await Promise.all([
    prepareChild(),
    announceCommand(session.store, lease, terminal, relay.stopped),
  ]);
  relay.stopped.throwIfAborted();
  lease.assertHeld();
  const child = await start(request.commandLine, {
    ...process.env,
    HOLDFAST_KEY: lease.key,
    HOLDFAST_TOKEN: String(lease.token),
  });
  supervision.onStart();
  relay.passTo(child.signal);
  const guard = guardLease(lease, request.graceMs, endable(supervision, child, trouble));
  const over = new AbortController();
  noteStart(child.pid, over.signal);
  const status = await child.ended;
  // Before anything is awaited: a later look at the clocks says nothing about the time when the command ran.
  guard.stop();
  over.abort();
  const verdict = judge(status, lease, guard, trouble);
  relay.passTo(null);
  if (verdict) throw verdict;
  return status;
}

function endable({ lease, terminal }: Supervision, child: Child, trouble: Trouble) {
  return {
    terminate(remainingMs: number): void {
      // First: telling may fail or take its time.
      child.signal('SIGTERM');
      const what = `"${lease.key}" could not be renewed${trouble.renewal()}`;
      terminal.warn(`${what}; sending TERM to the command, KILL in ${formatDuration(remainingMs)}`);
    },
    kill: child.kill,
  };
}

function judge(status: number, lease: Lease, guard: LeaseGuard, trouble: Trouble): Failure | null {
  const key = `"${printable(lease.key)}"`;
  const details = { code: 'lease-lost', key: lease.key, commandStatus: status };
  const lost = lease.held ? 'could not be renewed' : `was lost${trouble.loss()}`;
  if (guard.intervened) {
    return new Failure(EXIT.leaseLost, `${key} ${lost}; the command was ended (status ${status})`, details);
  }
  if (lease.held) return null;
  const text = `${key} ${lost}, before the command ended (status ${status}); another may have run meanwhile`;
  return new Failure(EXIT.leaseLost, text, details);
}

/** Why renewals fail and why the lease was lost, as far as known, in brackets. */
interface Trouble {
  readonly renewal: () => string;
  readonly loss: () => string;
}

function noteTrouble(locks: Locks, lease: Lease): Trouble {
  let cause: unknown;
  let reason = '';
  locks.on('jeopardy', (event) => {
    if (event.token === lease.token) cause = event.cause;
  });
  locks.on('lost', (event) => {
    if (event.token === lease.token) reason = ` (${event.reason})`;
  });
  return {
    renewal: () => (cause instanceof Error ? ` (${cause.message.replace(/\.$/, '')})` : ''),
    loss: () => reason,
  };
}
