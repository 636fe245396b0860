/** Closing at the signals that end a process. */
import type { DrainOptions, Locks, SignalSource } from './api.js';
import { InvalidArgumentError } from './protocol/errors.js';

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

type Signal = (typeof SIGNALS)[number];

/** What all calls for one process share. */
interface Listening {
  /** How many listeners of this kind it has, for each of its signals alike. */
  count: number;
  /** The signal that ends it when all are closed. Locks that come meanwhile have not heard it, and are closed, too. */
  endedBy: Signal | null;
}

const listening = new WeakMap<SignalSource, Listening>();

/**
 * Once closed, the signal is sent again with nobody listening, so that the process ends by it, as without this. Where
 * others listen, they decide when the process ends.
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
  // First of all, because a listener that listens once is gone when it has run, though its work has only begun.
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
