/**
 * The store for the service: every call is measured, and holds are removed from all errors. Drivers put whole statements
 * into their errors, and errors are logged. `close` does nothing: the opener of the store closes it.
 */
import { HoldfastError, type Store, UnsupportedError } from 'holdfast';
import type { Command, Reply } from 'holdfast/protocol';
import { monotonicMs } from '../clock.js';
import type { ServiceEventDetails, ServiceEvents } from '../service-events.js';

type Operation = ServiceEventDetails['store']['operation'];

/** Called with every reply of the store to a command of this service. */
export type OnReply = (command: Command, reply: Reply) => void;

export function observedStore(
  store: Store,
  events: ServiceEvents,
  onReply: OnReply = () => undefined,
): Store {
  const { name, traits, instances } = store;
  return {
    name,
    traits,
    ...(instances && { instances }),
    ...(store.listen && { listen: store.listen.bind(store) }),
    apply: (commands) => applyObserved(store, events, onReply, commands),
    read: async (key) => store.read(key),
    list: (query) => store.list(query),
    probe: async () => store.probe(),
    close: async () => undefined,
  };
}

/** Returns a function that emits how long the call took, and whether it was answered. */
function timed(events: ServiceEvents, operation: Operation, commands: number): (ok: boolean) => void {
  const sinceMs = monotonicMs();
  return (ok) => events.emit('store', { operation, commands, durationMs: monotonicMs() - sinceMs, ok });
}

/** A call that throws counts as rejected. */
export async function measured<T>(
  events: ServiceEvents,
  operation: Operation,
  call: () => Promise<T>,
): Promise<T> {
  const ended = timed(events, operation, operation === 'apply' ? 1 : 0);
  try {
    const answer = await call();
    ended(true);
    return answer;
  } catch (error) {
    ended(false);
    throw error;
  }
}

function applyObserved(
  store: Store,
  events: ServiceEvents,
  onReply: OnReply,
  commands: readonly Command[],
): readonly Promise<Reply>[] {
  const ended = timed(events, 'apply', commands.length);
  let left = commands.length;
  let ok = true;
  const settled = (isAnswered: boolean): void => {
    ok &&= isAnswered;
    left -= 1;
    if (left === 0) ended(ok);
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
        // A release, or a claim that was withdrawn in the background, changes the lock's views.
        const command = commands[index];
        if (command) onReply(command, answer);
        if (command?.kind === 'release') events.emit('touched', { key: command.key });
        return answer;
      }, rejected),
    );
  } catch (cause) {
    ended(false);
    throw conceal(cause);
  }
}

const CAUSES_MAX = 5;

/** One letter, so that a text does not grow when secrets, which clients choose, are replaced. */
const HIDDEN = '…';

/** Removes the secrets of these commands from errors. */
export function concealer(commands: readonly Command[]): (error: unknown) => unknown {
  let secrets: RegExp | null = null;
  return (error) => {
    secrets ??= patternOf(secretsIn(commands));
    return concealed(error, secrets);
  };
}

function secretsIn(commands: readonly Command[]): readonly string[] {
  const secrets = new Set<string>();
  for (const command of commands) {
    if (command.kind !== 'evict') secrets.add(command.hold.process);
    if (command.kind === 'claim' && command.inbox !== null) secrets.add(command.inbox);
  }
  return [...secrets];
}

/** The error without secrets; nearly always the same object, because it has none. */
function concealed(error: unknown, secrets: RegExp, depth = 0): unknown {
  if (!(error instanceof Error)) {
    const text = String(error);
    const clean = text.replaceAll(secrets, HIDDEN);
    return clean === text ? error : clean;
  }
  const cause =
    error.cause === undefined || depth > CAUSES_MAX ? undefined : concealed(error.cause, secrets, depth + 1);
  const message = error.message.replaceAll(secrets, HIDDEN);
  const stack = error.stack?.replaceAll(secrets, HIDDEN);
  if (message === error.message && stack === error.stack && cause === error.cause) return error;
  // An error of the library keeps its class, which tells callers what to do next.
  const clean = error instanceof HoldfastError ? error : new Error('');
  clean.message = message;
  clean.stack = stack ?? '';
  clean.cause = cause;
  return clean;
}

/** A text without these secrets. */
export function blanked(text: string, secrets: readonly string[]): string {
  return text.replaceAll(patternOf(secrets), HIDDEN);
}

/** Matches all of them in one pass, the longest first, because one may begin with another. */
function patternOf(secrets: readonly string[]): RegExp {
  const texts = secrets.filter((secret) => secret !== '').toSorted((a, b) => b.length - a.length);
  const parts = texts.map((text) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(parts.length > 0 ? parts.join('|') : '(?!)', 'g');
}
