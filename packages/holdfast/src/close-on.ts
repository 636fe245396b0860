/** Closing at the signals that end a process. */
import type { DrainOptions, Locks, SignalSource } from './api.js';
import { InvalidArgumentError } from './protocol/errors.js';

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** How many listeners of this kind a process has, for each of its signals alike. */
const own = new WeakMap<SignalSource, number>();

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
  let isClosing = false;
  const listeners = SIGNALS.map((signal) => ({ signal, listener: (): void => void close(signal) }));
  // First of all, because a listener that listens once is gone when it has run, though its work has only begun.
  for (const { signal, listener } of listeners) source.prependListener(signal, listener);
  own.set(source, (own.get(source) ?? 0) + 1);

  async function close(signal: (typeof SIGNALS)[number]): Promise<void> {
    const othersListen = source.listenerCount(signal) > (own.get(source) ?? 0);
    const drain = isClosing ? { drain: 0 } : options;
    isClosing = true;
    // A store that cannot be closed must not keep the process.
    await Promise.allSettled([locks.close(drain)]);
    stop();
    if (!othersListen && own.get(source) === 0) source.kill(source.pid, signal);
  }

  let isStopped = false;
  function stop(): void {
    if (isStopped) return;
    isStopped = true;
    own.set(source, (own.get(source) ?? 1) - 1);
    for (const { signal, listener } of listeners) source.off(signal, listener);
  }
  return stop;
}
