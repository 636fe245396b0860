/**
 * Receives wake-ups through `sql.listen` of postgres, which has a connection of its own for that. The driver listens again
 * after a loss, but only once: if the server is not back by then, the driver gives up, and keeps the failure for later
 * calls on that channel. So after a loss this file makes the driver forget its channels, and listens again.
 */
import { systemClock, type Timer } from '../../clock.js';
import { UntilEnded } from '../clients/until-ended.js';
import { type ChannelListener, RECONNECT_MS, type WakeListener } from './wake-listener.js';

interface Listening {
  unlisten(): Promise<void>;
}

interface PostgresJsListen {
  readonly listen: {
    (channel: string, receive: (payload: string) => void): PromiseLike<Listening>;
    channels?: Record<string, unknown>;
  };
}

interface Subscription {
  readonly channel: string;
  readonly listener: ChannelListener;
  listening: Promise<Listening>;
}

export function postgresJsWakeListener(sql: PostgresJsListen): WakeListener {
  const subscriptions = new Set<Subscription>();
  let suspected = false;
  let reconnecting: Timer | null = null;
  let failure: unknown = null;
  const untilClosed = new UntilEnded();

  function note(error: unknown): void {
    failure = error;
  }

  function tellAll(listening: boolean): void {
    for (const { listener } of subscriptions) listener.onListening?.(listening);
  }

  const subscribe = async (channel: string, listener: ChannelListener): Promise<Listening> =>
    await sql.listen(channel, (payload) => listener.receive(payload));

  async function unsubscribe({ listening }: Subscription): Promise<void> {
    // If the driver never listened, there is nothing to end.
    await listening.then(({ unlisten }) => unlisten()).catch(note);
  }

  function forget(channel: string): void {
    const { channels } = sql.listen;
    if (channels) delete channels[channel];
  }

  async function listenAgain(): Promise<void> {
    suspected = false;
    for (const { channel } of subscriptions) forget(channel);
    try {
      const all = [...subscriptions];
      for (const one of all) one.listening = subscribe(one.channel, one.listener);
      await Promise.all(all.map(({ listening }) => listening));
      if (!suspected) tellAll(true);
    } catch (error) {
      note(error);
      suspected = true;
      listenAgainLater();
    }
  }

  function listenAgainLater(): void {
    if (reconnecting || subscriptions.size === 0) return;
    reconnecting = systemClock.timer(RECONNECT_MS, () => {
      reconnecting = null;
      if (subscriptions.size > 0) void listenAgain();
    });
    reconnecting.keepAlive(false);
  }

  return {
    async listen(channel, listener) {
      const one: Subscription = { channel, listener, listening: subscribe(channel, listener) };
      subscriptions.add(one);
      try {
        await untilClosed.wait(one.listening);
      } catch (error) {
        subscriptions.delete(one);
        forget(channel);
        throw error;
      }
      return async () => {
        if (subscriptions.delete(one)) void unsubscribe(one);
      };
    },
    suspect() {
      suspected = true;
      tellAll(false);
      listenAgainLater();
    },
    error: () => (suspected ? failure : null),
    close() {
      for (const one of subscriptions) void unsubscribe(one);
      subscriptions.clear();
      reconnecting?.cancel();
      untilClosed.end(new Error('This PostgreSQL store is closed.'));
    },
  };
}
