/** The common part of commands that supervise another: a store, signals, and a line when a signal ends the waiting. */
import { Failure } from '../failure.js';
import type { Options } from '../options/options.js';
import { narrate } from '../printing/narration.js';
import type { Terminal } from '../printing/terminal.js';
import { openSession, type Session } from '../session.js';
import { quoted } from './held.js';
import { Interrupted, relaySignals, type SignalRelay, statusOfSignal, unlessAborted } from './signals.js';

/** Runs work with a session, and closes it. `keys`: the keys that the work waits for, for the message. */
export async function interruptible(
  options: Options,
  keys: readonly string[],
  terminal: Terminal,
  work: (session: Session, relay: SignalRelay) => Promise<number>,
): Promise<number> {
  const relay = relaySignals();
  try {
    const session = await unlessAborted(openSession(options), relay.stopped);
    if (session.store.traits.shared === 'process') {
      terminal.warn(
        `warning: a lock in ${session.url} exists only in this process: other processes can acquire it, too`,
      );
    }
    const silence = narrate(session.locks, options, terminal);
    try {
      return await work(session, relay);
    } finally {
      await session.close(terminal);
      silence();
    }
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    const status = statusOfSignal(error.signal);
    const what = keys.length === 0 ? 'the store' : quoted(keys);
    throw new Failure(status, `${error.signal} while waiting for ${what}: stopped waiting`);
  } finally {
    relay.end();
  }
}
