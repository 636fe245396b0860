/** `holdfast run`: a command under a lock. */
import { type Lease, type ReleaseOptions, StoreError } from 'holdfast';
import { acquireTick } from 'holdfast/schedule';
import { wallMs, within } from '../clock.js';
import type { Command } from '../command.js';
import { EXIT } from '../failure.js';
import { quote, type Terminal, warn } from '../printing/terminal.js';
import { interruptible } from '../run/interruptible.js';
import { acquire, type RunRequest, readRequest } from '../run/request.js';
import { type SignalRelay, unlessAborted } from '../run/signals.js';
import { superviseCommand } from '../run/supervision.js';
import type { Session } from '../session.js';

/** The wait for the releases is short: the command has ended, and after the deadline the lock is free anyway. */
const RELEASE_MS_MAX = 5_000;

export const run: Command = {
  name: 'run',
  operands: { min: 1, max: 1, text: 'KEY [OPTIONS] -- COMMAND [ARGS]' },
  takesCommandLine: true,
  options: [
    ...['key', 'shared', 'ttl', 'wait', 'owner', 'metadata', 'capacity', 'permits'],
    ...['grace', 'min-hold', 'max-hold', 'tick', 'quiet', 'verbose'],
  ] as const,
  summary: 'run COMMAND while holding KEY',
  about: `Runs COMMAND while holding the lock KEY, and exits with its status.

The lock is renewed while COMMAND runs, and signals are passed on to COMMAND. Its environment has the key in
HOLDFAST_LOCK and the fencing token in HOLDFAST_TOKEN. If the lease cannot be renewed, COMMAND gets TERM before it
ends (see --grace), KILL when it ends, and run exits 76. If the lock is not acquired in time, run exits 75.`,
  examples: [
    ['holdfast run nightly-report -- ./report.sh', 'one at a time; waits up to 10 seconds'],
    ['holdfast run nightly-report --wait 0 -- ./report.sh', 'does not wait: exits 75 if another one runs'],
    [
      'holdfast run deploy:web --wait 15m --owner "$(id -un)" -- make deploy',
      'waits longer, and names the owner',
    ],
    ['holdfast run encoders --capacity 3 -- ffmpeg -i in.mov out.mp4', 'at most three at a time'],
    ['holdfast run report --shared -- ./read-report.sh', 'beside others that only read'],
    ['holdfast run from --key to -- ./transfer.sh', 'holds both keys, or waits for both'],
    ['holdfast run nightly --tick 24h -- ./nightly.sh', 'from cron on three machines: once a day in all'],
    ['holdfast run import --max-hold 1h -- ./import.sh', 'ended after an hour, should it hang'],
  ],

  run(invocation, terminal) {
    const request = readRequest(invocation);
    const isTold = terminal.isTty || invocation.options.has('json');
    return interruptible(invocation.options, request.keys, terminal, async (session, relay) => {
      const [key = ''] = request.keys;
      if (request.tickMs === null || (await isOurTick(session, key, request.tickMs, relay)))
        return runUnderLock(session, request, relay, terminal);
      // Without a terminal, no line: cron mails every line.
      if (isTold) terminal.warn(`${quote(key)} was run for this tick already`);
      return EXIT.ok;
    });
  },
};

function isOurTick({ locks }: Session, key: string, tickMs: number, relay: SignalRelay): Promise<boolean> {
  const time = new Date(Math.floor(wallMs() / tickMs) * tickMs);
  return unlessAborted(acquireTick(locks, key, time, { late: tickMs }), relay.stopped);
}

async function runUnderLock(
  session: Session,
  request: RunRequest,
  relay: SignalRelay,
  terminal: Terminal,
): Promise<number> {
  const held = await acquire(session.locks, request, relay.stopped);
  let hasStarted = false;
  const onStart = (): void => {
    hasStarted = true;
  };
  try {
    relay.stopped.throwIfAborted();
    return await superviseCommand({ session, held, request, relay, terminal, onStart });
  } finally {
    // If no command ran, the lock is not kept for --min-hold.
    const options = hasStarted ? undefined : { minHold: 0 };
    await Promise.all(held.leases.map((lease) => release(lease, options, session, terminal)));
  }
}

/** Failures are warnings: the command has ended, and its status counts. */
async function release(
  lease: Lease,
  options: ReleaseOptions | undefined,
  { store }: Session,
  terminal: Terminal,
): Promise<void> {
  if (!lease.held) return;
  const end = 'when its ttl is over';
  const free = store.traits.livenessPollMs === null ? end : `once this process is gone, or ${end}`;
  const text = `${quote(lease.key)} could not be released; it is free ${free}`;
  try {
    const limitMs = Math.min(lease.remainingMs, RELEASE_MS_MAX);
    const released = lease.release(options).then(() => true);
    if (!(await within(limitMs, released))) warn(terminal, text, new Error('the store does not answer'));
  } catch (error) {
    // The message of the error promises a retry in the background, but this process ends.
    const { cause } = error instanceof StoreError ? error : { cause: error };
    warn(terminal, text, cause ?? new Error('the store does not answer'));
  }
}
