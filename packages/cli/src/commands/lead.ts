/** `holdfast lead`: a command that runs on one of any number of machines. */
import type { Election } from 'holdfast';
import { monotonicMs, pause } from '../clock.js';
import type { Command } from '../command.js';
import { EXIT, Failure } from '../failure.js';
import { formatDuration } from '../printing/describe.js';
import type { Terminal } from '../printing/terminal.js';
import { heldOf } from '../run/held.js';
import { interruptible } from '../run/interruptible.js';
import { type RunRequest, readRequest } from '../run/request.js';
import type { SignalRelay } from '../run/signals.js';
import { superviseCommand } from '../run/supervision.js';
import type { Session } from '../session.js';

/** The pause before an ended command is started again: doubles up to the second, unless the command ran for the third. */
const RESTART_MS = 1_000;
const RESTART_MS_MAX = 30_000;
const STEADY_MS = 60_000;

export const lead: Command = {
  name: 'lead',
  operands: { min: 1, max: 1, text: 'KEY [OPTIONS] -- COMMAND [ARGS]' },
  takesCommandLine: true,
  options: ['ttl', 'owner', 'metadata', 'grace', 'restart', 'quiet', 'verbose'],
  summary: 'run COMMAND while leading KEY, and again with every term',
  about: `Waits until it leads KEY, then runs COMMAND for as long as it leads.

If the lead is lost, COMMAND gets TERM before the lease ends (see --grace), KILL when it ends, and lead waits to lead
again, for as long as it takes. If COMMAND ends by itself, lead resigns and exits with its status; with --restart it
resigns and takes part again. Signals are passed on to COMMAND, and lead exits when that has ended. Its environment
has the key in HOLDFAST_LOCK and the term in HOLDFAST_TOKEN, which is the fencing token.`,
  examples: [
    ['holdfast lead scheduler -- ./scheduler.sh', 'on each of three machines: one runs it, two wait'],
    ['holdfast lead scheduler --ttl 10s -- ./scheduler.sh', 'the next one leads 10 seconds after a crash'],
    ['holdfast lead scheduler --restart -- ./scheduler.sh', 'also when the command itself fails'],
  ],

  run(invocation, terminal) {
    const request = readRequest(invocation);
    const restarts = invocation.options.has('restart');
    return interruptible(invocation.options, request.keys, terminal, (session, relay) =>
      leadAgain(session, request, relay, terminal, restarts),
    );
  },
};

async function leadAgain(
  session: Session,
  request: RunRequest,
  relay: SignalRelay,
  terminal: Terminal,
  restarts: boolean,
): Promise<number> {
  // An election waits without a limit.
  const { wait: _, ...options } = request.acquire;
  const [key = ''] = request.keys;
  const election = session.locks.elect(key, { ...options, signal: relay.stopped });
  for (let endings = 0; ; ) {
    const term = await leadOnce(election, session, request, relay, terminal);
    if (term === null) continue;
    if (!restarts || relay.received !== null || relay.hasEnded(term.status)) return term.status;
    endings = term.ranMs < STEADY_MS ? endings + 1 : 1;
    const pauseMs = Math.min(RESTART_MS * 2 ** (endings - 1), RESTART_MS_MAX);
    terminal.warn(
      `the command ended (status ${term.status}); resigned, takes part again in ${formatDuration(pauseMs)}`,
    );
    await pause(pauseMs, relay.stopped);
  }
}

/** One term. Null when it was lost: the command was ended. */
async function leadOnce(
  election: Election,
  session: Session,
  request: RunRequest,
  relay: SignalRelay,
  terminal: Terminal,
): Promise<{ readonly status: number; readonly ranMs: number } | null> {
  for await (const lease of election) {
    let startedMs = monotonicMs();
    const onStart = (): void => {
      startedMs = monotonicMs();
    };
    try {
      const status = await superviseCommand({
        session,
        held: heldOf(lease),
        request,
        relay,
        terminal,
        onStart,
      });
      return { status, ranMs: monotonicMs() - startedMs };
    } catch (error) {
      const isLost = error instanceof Failure && error.status === EXIT.leaseLost;
      if (!isLost || relay.received !== null) throw error;
      terminal.warn(`${error.message}; waiting to lead again`);
      return null;
    }
  }
  throw relay.stopped.reason;
}
