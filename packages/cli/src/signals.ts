/**
 * Signals that `run` gets: before its command starts they end the waiting, afterwards they are passed on.
 *
 * Ctrl-C and Ctrl-\ at a terminal reach every process of the foreground group, the command among them. Passing them on
 * too would be a second Ctrl-C, which many programs take for "stop at once, without cleaning up".
 */
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { isatty } from 'node:tty';
import { SIGNAL_BASE } from './exit.js';

/** All that can be caught and mean something to another program. Without a listener, USR1 would open Node's debugger. */
const PASSED_ON = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGALRM'] as const;
const FROM_KEYBOARD: ReadonlySet<NodeJS.Signals> = new Set(['SIGINT', 'SIGQUIT']);

/** Why waiting ended: somebody signalled this process. */
export class Interrupted extends Error {
  readonly signal: NodeJS.Signals;

  constructor(signal: NodeJS.Signals) {
    super(signal);
    this.name = 'Interrupted';
    this.signal = signal;
  }
}

export interface SignalRelay {
  /** Aborted with `Interrupted` by the first signal that came while there was nobody to pass it to. */
  readonly stopped: AbortSignal;
  passTo(target: ((signal: NodeJS.Signals) => void) | null): void;
  end(): void;
}

export function relaySignals(): SignalRelay {
  const stopping = new AbortController();
  let target: ((signal: NodeJS.Signals) => void) | null = null;
  const listeners = PASSED_ON.map((signal) => {
    const listener = (): void => {
      if (!target) stopping.abort(new Interrupted(signal));
      else if (!FROM_KEYBOARD.has(signal) || !isInForeground()) target(signal);
    };
    process.on(signal, listener);
    return () => process.off(signal, listener);
  });
  return {
    stopped: stopping.signal,
    passTo(next) {
      target = next;
      const { aborted, reason } = stopping.signal;
      // It came while the target was being made.
      if (aborted && reason instanceof Interrupted) next?.(reason.signal);
    },
    end: () => {
      for (const stop of listeners) stop();
    },
  };
}

export function statusOfSignal(signal: NodeJS.Signals): number {
  return SIGNAL_BASE + constants.signals[signal];
}

/** Rejects as soon as the signal aborts; the work itself goes on and its outcome is of no interest any more. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** Asked anew each time: a job moves between foreground and background. */
function isInForeground(): boolean {
  if (process.platform !== 'linux') return isatty(0);
  return foregroundOf(readFileSync('/proc/self/stat', 'utf8'));
}

/** From a line of /proc/PID/stat: is its process group the one that its terminal sends keys to? */
export function foregroundOf(stat: string): boolean {
  // The name in brackets may hold anything, brackets and spaces too.
  const [, , processGroup, , terminal, foregroundGroup] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return terminal !== '0' && processGroup === foregroundGroup;
}
