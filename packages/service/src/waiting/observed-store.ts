/**
 * The store as the service uses it: every call is measured, and no error of it has a hold in it. Drivers put whole
 * statements into their errors, and errors are logged. Closing it does nothing: whoever opened the store closes it.
 */
import { type Store, UnsupportedError } from 'holdfast';
import type { Command, Reply } from 'holdfast/protocol';
import { monotonicMs } from '../clock.js';
import type { ServiceEventDetails, ServiceEvents } from '../service-events.js';
import { concealer } from './concealment.js';

type Operation = ServiceEventDetails['store']['operation'];

export function observedStore(store: Store, events: ServiceEvents): Store {
  const { name, traits, instances } = store;
  return {
    name,
    traits,
    ...(instances && { instances }),
    ...(store.listen && { listen: store.listen.bind(store) }),
    apply: (commands) => applyObserved(store, events, commands),
    read: async (key) => store.read(key),
    list: (query) => store.list(query),
    probe: async () => store.probe(),
    close: async () => undefined,
  };
}

/** Tells how long a call took and whether it was answered. A call that throws counts as rejected. */
export async function measured<T>(
  events: ServiceEvents,
  operation: Operation,
  call: () => Promise<T>,
): Promise<T> {
  const sinceMs = monotonicMs();
  const commands = operation === 'apply' ? 1 : 0;
  const tell = (ok: boolean): void =>
    events.emit('store', { operation, commands, durationMs: monotonicMs() - sinceMs, ok });
  try {
    const answer = await call();
    tell(true);
    return answer;
  } catch (error) {
    tell(false);
    throw error;
  }
}

function applyObserved(
  store: Store,
  events: ServiceEvents,
  commands: readonly Command[],
): readonly Promise<Reply>[] {
  const sinceMs = monotonicMs();
  let left = commands.length;
  let ok = true;
  const settled = (isAnswered: boolean): void => {
    ok &&= isAnswered;
    left -= 1;
    const durationMs = monotonicMs() - sinceMs;
    if (left === 0) events.emit('store', { operation: 'apply', commands: commands.length, durationMs, ok });
  };
  const conceal = concealer(commands);
  const rejected = (cause: unknown): never => {
    settled(cause instanceof UnsupportedError);
    throw conceal(cause);
  };
  try {
    return store.apply(commands).map((reply, index) =>
      reply.then((answer) => {
        settled(true);
        // A claim that was taken back in the background, or a release: the lock's views change.
        const command = commands[index];
        if (command?.kind === 'release') events.emit('touched', { key: command.key });
        return answer;
      }, rejected),
    );
  } catch (cause) {
    events.emit('store', {
      operation: 'apply',
      commands: commands.length,
      durationMs: monotonicMs() - sinceMs,
      ok: false,
    });
    throw conceal(cause);
  }
}
