/** Closing at the signals that end a process. */
import type { DrainOptions, Locks, SignalSource } from './api.js';
import { InvalidArgumentError } from './protocol/errors.js';

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

type Signal = (typeof SIGNALS)[number];

/** The state that all calls for one process share. */
interface Listening {
  /** The number of these listeners, the same for each of its signals. */
  count: number;
  /** The signal that ends the process when all locks are closed. Locks added after the signal are closed, too. */
  endedBy: Signal | null;
}

const listening = new WeakMap<SignalSource, Listening>();

/**
 * After closing, sends the signal again without a listener, so that it ends the process. If the signal has other
 * listeners, they decide when the process ends.
 */
export function closeOn(
  locks: Pick<Locks, 'close'>,
  source: SignalSource,
  options?: DrainOptions,
): () => void {
  if (typeof source?.prependListener !== 'function' || typeof source.kill !== 'function') {
    throw new InvalidArgumentError('closeOn needs the process: closeOn(process).');
  }
  const own = listening.get(source) ?? { count: 0, endedBy: null };
  listening.set(source, own);
  let isClosing = false;
  const listeners = SIGNALS.map((signal) => ({ signal, listener: (): void => void close(signal) }));
  // Prepended: a `once` listener that ran before would not be counted, although its work has only begun.
  for (const { signal, listener } of listeners) source.prependListener(signal, listener);
  own.count += 1;

  async function close(signal: Signal): Promise<void> {
    const othersListen = source.listenerCount(signal) > own.count;
    if (!othersListen) own.endedBy = signal;
    const drain = isClosing ? { drain: 0 } : options;
    isClosing = true;
    // A store that cannot be closed must not keep the process.
    await Promise.allSettled([locks.close(drain)]);
    stop();
    if (!othersListen && own.count === 0) source.kill(source.pid, signal);
  }

  let isStopped = false;
  function stop(): void {
    if (isStopped) return;
    isStopped = true;
    own.count -= 1;
    if (own.count === 0) own.endedBy = null;
    for (const { signal, listener } of listeners) source.off(signal, listener);
  }
  if (own.endedBy !== null) void close(own.endedBy);
  return stop;
}
