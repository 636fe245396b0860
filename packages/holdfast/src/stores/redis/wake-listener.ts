/**
 * Receives wake-ups on one connection per store, which all its inboxes share. It is opened with the first inbox. While it
 * is lost, no wake-ups arrive, and waiters poll.
 */
import { type Stop, UnsupportedError } from '../../protocol/index.js';
import { UntilEnded } from '../clients/until-ended.js';
import { deliverWake, type OnListening, type OnWake } from '../clients/wake-up.js';
import type { OnMessage, Subscriber } from './connection.js';

interface Channel {
  readonly listeners: Map<OnWake, OnListening>;
  readonly subscribed: Promise<unknown>;
}

interface OpenSubscriber {
  readonly subscriber: Subscriber;
  readonly connected: Promise<unknown>;
}

export interface WakeListener {
  /** Rejects when subscribing fails now. */
  listen(channel: string, onWake: OnWake, onListening: OnListening): Promise<Stop>;
  /** The last error that no caller got; undefined for none. */
  error(): unknown;
  close(): Promise<void>;
}

/** `keyPrefix`: the prefix of every key in Redis. */
export function wakeListener(
  open: (onMessage: OnMessage, onListening: OnListening) => Subscriber,
  keyPrefix: string,
): WakeListener {
  const separator = `:${keyPrefix}`;
  const channels = new Map<string, Channel>();
  let current: OpenSubscriber | null = null;
  let lastError: unknown;
  const untilClosed = new UntilEnded();
  const noteError = (error: unknown): void => {
    lastError = error;
  };

  function onMessage(name: string, message: string): void {
    const channel = channels.get(name);
    if (!channel) return;
    for (const onWake of channel.listeners.keys()) deliverWake(message, separator, onWake);
  }

  function setListening(listening: boolean): void {
    for (const { listeners } of channels.values()) {
      for (const onListening of listeners.values()) onListening(listening);
    }
  }

  /** The open connection. After a failure, the next caller opens another one. */
  function opened(): OpenSubscriber {
    if (current) return current;
    const subscriber = open(onMessage, setListening);
    const opening = { subscriber, connected: subscriber.connect() };
    current = opening;
    opening.connected.catch((error: unknown) => {
      noteError(error);
      if (current === opening) current = null;
      void end(subscriber);
    });
    return opening;
  }

  async function subscribe(channel: string): Promise<unknown> {
    const { subscriber, connected } = opened();
    await connected;
    return subscriber.subscribe(channel);
  }

  async function end(subscriber: Subscriber): Promise<void> {
    try {
      await subscriber.close();
    } catch (error) {
      noteError(error);
    }
  }

  function channelOf(name: string): Channel {
    const known = channels.get(name);
    if (known) return known;
    const channel: Channel = {
      listeners: new Map(),
      subscribed: untilClosed.wait(subscribe(name)),
    };
    channels.set(name, channel);
    channel.subscribed.catch((error: unknown) => {
      noteError(error);
      if (channels.get(name) === channel) channels.delete(name);
    });
    return channel;
  }

  return {
    async listen(name, onWake, onListening) {
      const channel = channelOf(name);
      channel.listeners.set(onWake, onListening);
      await channel.subscribed;
      return async () => {
        channel.listeners.delete(onWake);
        if (channel.listeners.size > 0 || channels.get(name) !== channel) return;
        channels.delete(name);
        // Not awaited: while the connection is lost, this would wait until it is back.
        current?.subscriber.unsubscribe(name).catch(noteError);
      };
    },
    error: () => lastError,
    async close() {
      untilClosed.end(new UnsupportedError('This Redis store is closed.'));
      const closing = current;
      const names = [...channels.keys()];
      channels.clear();
      current = null;
      if (!closing) return;
      // A connection of the user stays open, without the store's channels.
      for (const name of names) closing.subscriber.unsubscribe(name).catch(noteError);
      await end(closing.subscriber);
    },
  };
}
