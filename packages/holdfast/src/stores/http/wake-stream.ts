/** One open stream of wake-ups, from the request to its end. */
import { systemClock, type Timer } from '../../clock.js';
import type { WakeStream } from '../clients/wake-streams.js';
import { isWhy, type OnListening, type OnWake } from '../clients/wake-up.js';
import type { Connection } from './connection.js';
import { EventStream, type ServerEvent } from './event-stream.js';

/** The service reports within this time that it listens. */
const READY_MS_MAX = 10_000;
/** The service sends something every 15 s. A connection that is silent three times as long is gone. */
const SILENCE_MS_MAX = 45_000;

/** `onListening` is called when the service's own store stops receiving wake-ups, and when it does again. */
export function wakeStream(
  connection: Connection,
  inbox: string,
  onWake: OnWake,
  onListening: OnListening,
): WakeStream {
  const controller = new AbortController();
  let receivedMs = systemClock.monotonicMs();
  let isReady = false;
  let onReady: () => void = () => undefined;
  let silenceTimer: Timer | null = null;

  const end = (why: string): void => controller.abort(new Error(why));

  function watchSilence(): void {
    const untilMs = receivedMs + (isReady ? SILENCE_MS_MAX : READY_MS_MAX);
    const leftMs = untilMs - systemClock.monotonicMs();
    if (leftMs > 0) {
      silenceTimer = systemClock.timer(leftMs, watchSilence);
      silenceTimer.keepAlive(false);
    } else end('The stream of wake-ups fell silent.');
  }

  function take({ event, data }: ServerEvent): void {
    switch (event) {
      case 'ready':
        isReady = true;
        onReady();
        return;
      case 'wake': {
        const { key, why } = JSON.parse(data) as { readonly key?: unknown; readonly why?: unknown };
        // Nothing is delivered after `end`, even if it had been received before.
        if (typeof key === 'string' && isWhy(why) && !controller.signal.aborted) onWake(key, why);
        return;
      }
      case 'listening':
        onListening((JSON.parse(data) as { readonly listening?: unknown }).listening === true);
        return;
      case 'trouble':
        throw new Error('The service cannot listen to its store now.');
      default:
    }
  }

  async function read(): Promise<never> {
    try {
      watchSilence();
      const path = `/v2/inboxes/${encodeURIComponent(inbox)}/events`;
      const events = new EventStream();
      for await (const bytes of await connection.open(path, controller)) {
        controller.signal.throwIfAborted();
        receivedMs = systemClock.monotonicMs();
        for (const event of events.push(bytes)) take(event);
      }
    } finally {
      silenceTimer?.cancel();
      // Also where reading failed: the connection is of no further use.
      controller.abort();
    }
    throw new Error('The service ended the stream of wake-ups.');
  }

  const { url } = connection;
  const listening = new Promise<void>((resolve) => {
    onReady = resolve;
  });
  const reading = read();
  const ended = reading.catch((error: unknown) => error);
  return { url, ready: Promise.race([listening, reading]), ended, end };
}
