/**
 * Signals to `run`: before its command starts they end the waiting; afterwards `run` passes them on.
 *
 * Ctrl-C and Ctrl-\ at a terminal reach every process of the foreground group, the command included. Passed on, they would
 * be a second Ctrl-C, which for many programs means "stop at once, without cleaning up".
 */
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { isatty } from 'node:tty';
import { codeOf } from '../printing/outlet.js';

/** Signals that can be caught and that other programs use. Without a listener, USR1 would open Node's debugger. */
const PASSED_ON = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGALRM'] as const;
const ENDING: ReadonlySet<NodeJS.Signals> = new Set(['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM']);
/** To a command, HUP often means that it reads its settings again. */
const ENDING_COMMAND: ReadonlySet<NodeJS.Signals> = new Set(['SIGINT', 'SIGQUIT', 'SIGTERM']);
const FROM_KEYBOARD: ReadonlySet<NodeJS.Signals> = new Set(['SIGINT', 'SIGQUIT']);

/** The reason why waiting ended: a signal to this process. */
export class Interrupted extends Error {
  readonly signal: NodeJS.Signals;

  constructor(signal: NodeJS.Signals) {
    super(signal);
    this.name = 'Interrupted';
    this.signal = signal;
  }
}

export interface SignalRelay {
  /** Aborted with `Interrupted` by the first signal that came before there was a command. */
  readonly stopped: AbortSignal;
  /**
   * The last signal that asks a program to end, `run` or its command; null before. HUP only while there is no command.
   */
  readonly received: NodeJS.Signals | null;
  /** Whether this is the status of a command that ended by a signal passed on to it. */
  hasEnded(status: number): boolean;
  passTo(target: ((signal: NodeJS.Signals) => void) | null): void;
  end(): void;
}

export function relaySignals(): SignalRelay {
  const stopping = new AbortController();
  let target: ((signal: NodeJS.Signals) => void) | null = null;
  let received: NodeJS.Signals | null = null;
  const passedOn = new Set<number>();
  const listeners = PASSED_ON.map((signal) => {
    const listener = (): void => {
      if ((target ? ENDING_COMMAND : ENDING).has(signal)) received = signal;
      if (!target) {
        stopping.abort(new Interrupted(signal));
        return;
      }
      passedOn.add(statusOfSignal(signal));
      if (!FROM_KEYBOARD.has(signal) || !isInForeground()) target(signal);
    };
    process.on(signal, listener);
    return () => process.off(signal, listener);
  });
  return {
    stopped: stopping.signal,
    get received() {
      return received;
    },
    hasEnded: (status) => passedOn.has(status),
    passTo(next) {
      target = next;
      if (next) passedOn.clear();
      const { aborted, reason } = stopping.signal;
      // The signal came while the command was being started.
      if (aborted && reason instanceof Interrupted) next?.(reason.signal);
    },
    end: () => {
      for (const stop of listeners) stop();
    },
  };
}

/** A shell reports 128 + n for a command that signal n ended. */
export function statusOfSignal(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

/** Rejects as soon as the signal aborts. The work itself goes on, and its outcome is ignored. */
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

/** Read each time, because a job moves between foreground and background. */
function isInForeground(): boolean {
  if (process.platform !== 'linux') return isatty(0);
  try {
    return foregroundOf(readFileSync('/proc/self/stat', 'utf8'));
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return isatty(0);
  }
}

/** Whether the process group of a line of /proc/PID/stat gets the keys of its terminal. */
export function foregroundOf(stat: string): boolean {
  // The name in brackets may contain anything, brackets and spaces too.
  const [, , processGroup, , terminal, foregroundGroup] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return terminal !== '0' && processGroup === foregroundGroup;
}
