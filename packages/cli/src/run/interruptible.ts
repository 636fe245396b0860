/** What commands that supervise another have in common: a store, signals, and a line when one of them ends the waiting. */
import { Failure } from '../failure.js';
import type { Options } from '../options/options.js';
import { printable, type Terminal } from '../printing/terminal.js';
import { openSession, type Session } from '../session.js';
import { Interrupted, relaySignals, type SignalRelay, statusOfSignal, unlessAborted } from './signals.js';

/** Runs work with a session, and closes it. `key`: what is waited for, for the message. */
export async function interruptible(
  options: Options,
  key: string,
  terminal: Terminal,
  work: (session: Session, relay: SignalRelay) => Promise<number>,
): Promise<number> {
  const relay = relaySignals();
  try {
    const session = await unlessAborted(openSession(options), relay.stopped);
    if (session.store.traits.shared === 'process') {
      terminal.warn(`warning: a lock in ${session.url} is visible to this process only: it excludes nobody`);
    }
    try {
      return await work(session, relay);
    } finally {
      await session.close(terminal);
    }
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    const status = statusOfSignal(error.signal);
    throw new Failure(status, `${error.signal} while waiting for "${printable(key)}": stopped waiting`);
  } finally {
    relay.end();
  }
}
