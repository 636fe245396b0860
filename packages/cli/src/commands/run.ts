/** `holdfast run`: a command under a lock. */
import { type Lease, StoreError } from 'holdfast';
import { acquire } from '../acquisition.js';
import { within } from '../clock.js';
import type { Command } from '../command.js';
import { Failure } from '../exit.js';
import { printable, type Terminal, warn } from '../output.js';
import { type RunRequest, readRequest } from '../run-request.js';
import { openSession, type Session } from '../session.js';
import { Interrupted, relaySignals, type SignalRelay, statusOfSignal, unlessAborted } from '../signals.js';
import { superviseCommand } from '../supervision.js';

/** After the deadline the lock is free anyway; nobody should wait that long for a command that has ended. */
const RELEASE_MS_MAX = 5_000;

export const run: Command = {
  name: 'run',
  operands: { min: 1, max: 1, text: 'KEY [OPTIONS] -- COMMAND [ARGS]' },
  takesCommandLine: true,
  options: ['ttl', 'wait', 'owner', 'capacity', 'permits', 'grace', 'min-hold'],
  summary: 'run COMMAND while holding KEY',
  about: `Runs COMMAND while holding the lock KEY, and exits with its status.

The lock is renewed for as long as COMMAND runs. Signals are passed on to COMMAND. It finds the name of the lock in
HOLDFAST_KEY and the fencing token in HOLDFAST_TOKEN. If the lease cannot be renewed, COMMAND gets TERM a grace before
the lock may be another's and KILL when it may be, and run exits 76. If the lock is not had in time, it exits 75.`,
  examples: [
    ['holdfast run nightly-report -- ./report.sh', 'one at a time; wait up to 10 seconds for it'],
    ['holdfast run nightly-report --wait 0 -- ./report.sh', 'now or not at all: exits 75 if another runs'],
    [
      'holdfast run deploy:web --wait 15m --owner "$(id -un)" -- make deploy',
      'wait longer, and say who you are',
    ],
    ['holdfast run encoders --capacity 3 -- ffmpeg -i in.mov out.mp4', 'at most three at a time'],
    ['holdfast run hourly --wait 0 --min-hold 50m -- ./hourly.sh', 'once an hour, however many start it'],
  ],

  async run(invocation, terminal) {
    const request = readRequest(invocation);
    const relay = relaySignals();
    try {
      const session = await unlessAborted(openSession(invocation.options), relay.stopped);
      if (session.store.traits.shared === 'process') {
        terminal.warn(`warning: nobody else can see a lock in ${session.url}: it keeps no other process out`);
      }
      try {
        return await runUnderLock(session, request, relay, terminal);
      } finally {
        await session.close(terminal);
      }
    } catch (error) {
      if (!(error instanceof Interrupted)) throw error;
      const status = statusOfSignal(error.signal);
      throw new Failure(status, `${error.signal} while waiting for "${printable(request.key)}": gave up`);
    } finally {
      relay.end();
    }
  },
};

async function runUnderLock(
  session: Session,
  request: RunRequest,
  relay: SignalRelay,
  terminal: Terminal,
): Promise<number> {
  const lease = await acquire(session.locks, request, relay.stopped);
  let hasStarted = false;
  const onStart = (): void => {
    hasStarted = true;
  };
  try {
    relay.stopped.throwIfAborted();
    return await superviseCommand({ session, lease, request, relay, terminal, onStart });
  } finally {
    await release(lease, session, terminal);
    if (!hasStarted && request.acquire.minHold !== undefined)
      await endRest(lease, session, request, terminal);
  }
}

/** Whatever happens here, the command has ended and its status is what counts. */
async function release(lease: Lease, { store }: Session, terminal: Terminal): Promise<void> {
  if (!lease.held) return;
  const end = 'when its ttl is over';
  const free = store.traits.vigilMs === null ? end : `once this process is gone, or ${end}`;
  const text = `"${printable(lease.key)}" could not be released; it is free ${free}`;
  try {
    const limitMs = Math.min(lease.remainingMs, RELEASE_MS_MAX);
    const released = lease.release().then(() => true);
    if (!(await within(limitMs, released))) warn(terminal, text, new Error('the store does not answer'));
  } catch (error) {
    // That it is tried again in the background is true only for as long as this process lives.
    const { cause } = error instanceof StoreError ? error : { cause: error };
    warn(terminal, text, cause ?? new Error('the store does not answer'));
  }
}

/**
 * A command that never ran needs no rest. A lock has no other holder with a token so low; of a semaphore others would be
 * evicted too, so there the rest stays.
 */
async function endRest(
  lease: Lease,
  session: Session,
  request: RunRequest,
  terminal: Terminal,
): Promise<void> {
  if (request.capacity !== null) return;
  try {
    const evicted = session.locks.evict(request.key, { upToToken: lease.token });
    await within(RELEASE_MS_MAX, evicted);
  } catch (error) {
    warn(terminal, `"${printable(lease.key)}" stays at rest, though the command was not started`, error);
  }
}
