/** Events for listeners and `node:diagnostics_channel`. If a listener throws or rejects, the others are still called. */
import { channel } from 'node:diagnostics_channel';
import type { LockEventName, LockEvents } from '../api.js';
import { callOrWarn } from './callback.js';
import type { LeaseRequest } from './lease-request.js';

type Listener = (detail: LockEvents[LockEventName]) => unknown;
/** A channel of Node. Declared here, because the library's declarations must not need Node's types. */
interface Channel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}
type Own<N extends LockEventName> = Omit<LockEvents[N], 'key' | 'owner'>;

export const EVENT_NAMES: readonly LockEventName[] = [
  'acquiring',
  'acquired',
  'waiting',
  'not-acquired',
  'renewed',
  'jeopardy',
  'lost',
  'released',
  'handed-off',
  'adopted',
];
export const CHANNELS = Object.fromEntries(
  EVENT_NAMES.map((name): [string, Channel] => [name, channel(`holdfast:${name}`)]),
) as Readonly<Record<LockEventName, Channel>>;

export function isEventName(name: unknown): name is LockEventName {
  return EVENT_NAMES.some((known) => known === name);
}

const calls = new WeakMap<LeaseRequest, number>();
let lastCall = 0;

/** The number of a call, given when an event first needs it. */
export function callOf(request: LeaseRequest): number {
  const call = calls.get(request) ?? ++lastCall;
  calls.set(request, call);
  return call;
}

export class Events {
  readonly #listeners = new Map<Channel, Set<Listener>>();
  /** Events caused by listeners of another event. They are emitted after it, so that all listeners see the same order. */
  readonly #next: { readonly name: LockEventName; readonly detail: LockEvents[LockEventName] }[] = [];
  #isTelling = false;

  on<N extends LockEventName>(name: N, listener: (detail: LockEvents[N]) => void): () => void {
    const own = this.#listeners.get(CHANNELS[name]) ?? new Set();
    // A new wrapper, so that the same function may listen twice.
    const entry: Listener = (detail) => listener(detail as LockEvents[N]);
    this.#listeners.set(CHANNELS[name], own.add(entry));
    return () => {
      own.delete(entry);
    };
  }

  /** Whether this channel's event has listeners. By channel and not by name: every lease asks, and this is faster. */
  readonly has = (event: Channel): boolean =>
    event.hasSubscribers || (this.#listeners.size > 0 && !!this.#listeners.get(event)?.size);

  /** Makes the detail only if there is a listener. */
  emit<N extends LockEventName>(name: N, request: LeaseRequest, own: () => Own<N>): void {
    if (!this.has(CHANNELS[name])) return;
    this.#next.push({ name, detail: { key: request.name, owner: request.owner, ...own() } as LockEvents[N] });
    if (this.#isTelling) return;
    this.#isTelling = true;
    try {
      for (let next = this.#next.shift(); next; next = this.#next.shift()) this.#tell(next.name, next.detail);
    } finally {
      this.#isTelling = false;
    }
  }

  #tell(name: LockEventName, detail: LockEvents[LockEventName]): void {
    const event = CHANNELS[name];
    event.publish(detail);
    for (const listener of [...(this.#listeners.get(event) ?? [])]) {
      callOrWarn(() => listener(detail), `A listener of the Holdfast event "${name}" threw`);
    }
  }
}
