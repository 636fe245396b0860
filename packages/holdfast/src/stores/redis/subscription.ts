/**
 * Hints, on one connection a store that all its inboxes share. It is opened when somebody first listens. Hints may be
 * lost: while the connection is away, nothing is heard, and every waiter asks by itself now and then.
 */
import { type Stop, UnsupportedError, type Why } from '../../protocol/index.js';
import { deliverWake } from '../clients/wake-up.js';
import type { Heard, Hears, Subscriber } from './connection.js';

type Listener = (key: string, why: Why) => void;

interface Channel {
  /** Whom to tell what is heard, and whether anything is. */
  readonly listeners: Map<Listener, Hears>;
  readonly subscribed: Promise<unknown>;
}

export interface Subscription {
  /** Rejects when it cannot be subscribed now. */
  listen(channel: string, listener: Listener, hears: Hears): Promise<Stop>;
  /** What went wrong last without anybody being told. */
  trouble(): unknown;
  close(): Promise<void>;
}

/** `keysBegin` is what every key begins with in Redis. */
export function subscription(
  open: (heard: Heard, hears: Hears) => Subscriber,
  keysBegin: string,
): Subscription {
  const channels = new Map<string, Channel>();
  let current: { readonly subscriber: Subscriber; readonly connected: Promise<unknown> } | null = null;
  let trouble: unknown;
  let refuse: (error: Error) => void = () => undefined;
  const closed = new Promise<never>((_, reject) => {
    refuse = reject;
  });
  const noteTrouble = (error: unknown): void => {
    trouble = error;
  };
  closed.catch(noteTrouble);

  function hear(channel: string, message: string): void {
    const heard = channels.get(channel);
    if (!heard) return;
    for (const listener of heard.listeners.keys()) deliverWake(message, keysBegin, listener);
  }

  function tell(hearing: boolean): void {
    for (const { listeners } of channels.values()) {
      for (const hears of listeners.values()) hears(hearing);
    }
  }

  /** Connected, or the reason why not; after a failure it begins anew. */
  function connected(): { readonly subscriber: Subscriber; readonly connected: Promise<unknown> } {
    if (current) return current;
    const subscriber = open(hear, tell);
    const opened = { subscriber, connected: subscriber.connect() };
    current = opened;
    opened.connected.catch((error: unknown) => {
      noteTrouble(error);
      if (current === opened) current = null;
      void ended(subscriber);
    });
    return opened;
  }

  async function subscribe(channel: string): Promise<unknown> {
    const { subscriber, connected: ready } = connected();
    await ready;
    return subscriber.subscribe(channel);
  }

  async function ended(subscriber: Subscriber): Promise<void> {
    try {
      await subscriber.close();
    } catch (error) {
      noteTrouble(error);
    }
  }

  function channelOf(name: string): Channel {
    const known = channels.get(name);
    if (known) return known;
    const made: Channel = { listeners: new Map(), subscribed: Promise.race([subscribe(name), closed]) };
    channels.set(name, made);
    made.subscribed.catch((error: unknown) => {
      noteTrouble(error);
      if (channels.get(name) === made) channels.delete(name);
    });
    return made;
  }

  return {
    async listen(name, listener, hears) {
      const channel = channelOf(name);
      channel.listeners.set(listener, hears);
      await channel.subscribed;
      return async () => {
        channel.listeners.delete(listener);
        if (channel.listeners.size > 0 || channels.get(name) !== channel) return;
        channels.delete(name);
        // Not waited for: while the connection is away it would take until it is back, and nothing is heard any more.
        current?.subscriber.unsubscribe(name).catch(noteTrouble);
      };
    },
    trouble: () => trouble,
    async close() {
      refuse(new UnsupportedError('This Redis store is closed.'));
      const opened = current;
      const names = [...channels.keys()];
      channels.clear();
      current = null;
      if (!opened) return;
      // Where the connection is the user's, it goes on, without our channels.
      for (const name of names) opened.subscriber.unsubscribe(name).catch(noteTrouble);
      await ended(opened.subscriber);
    },
  };
}
