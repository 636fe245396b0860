/** Closing at the signals that end a process. */
import type { DrainOptions, Locks, SignalSource } from './api.js';
import { InvalidArgumentError } from './protocol/errors.js';

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/**
 * Once closed, the signal is sent again with nobody listening, so that the process ends by it, as without this. Where
 * others listen, they decide when the process ends.
 */
export function closeOn(
  locks: Pick<Locks, 'close'>,
  source: SignalSource,
  options?: DrainOptions,
): () => void {
  if (typeof source?.listenerCount !== 'function' || typeof source.kill !== 'function') {
    throw new InvalidArgumentError('closeOn needs the process: closeOn(process).');
  }
  let isClosing = false;
  const listeners = SIGNALS.map((signal) => {
    const listener = async (): Promise<void> => {
      const { pid } = source;
      const drain = isClosing ? { drain: 0 } : options;
      isClosing = true;
      // A store that cannot be closed must not keep the process.
      await Promise.allSettled([locks.close(drain)]);
      stop();
      if (source.listenerCount(signal) === 0) source.kill(pid, signal);
    };
    return { signal, listener: (): void => void listener() };
  });
  for (const { signal, listener } of listeners) source.on(signal, listener);
  function stop(): void {
    for (const { signal, listener } of listeners) source.off(signal, listener);
  }
  return stop;
}
