/**
 * Wake-ups by a watch on the keys of an inbox. A stream that was lost goes on after the last revision that it brought, so
 * that nothing is missed; unless etcd has compacted its history since: then it goes on with what comes.
 */
import { systemClock } from '../../clock.js';
import { UnsupportedError } from '../../protocol/index.js';
import type { OpenWakeStream } from '../clients/wake-streams.js';
import { isWhy } from '../clients/wake-up.js';
import { RecentMap } from '../compare-and-swap/recent-map.js';
import type { Gateway, KeyValue } from './gateway.js';
import { inboxPrefix } from './records.js';
import { rangeOf, textOf } from './requests.js';

interface WatchResult {
  readonly header?: { readonly revision?: string };
  readonly created?: boolean;
  readonly canceled?: boolean;
  readonly compact_revision?: string;
  readonly cancel_reason?: string;
  readonly events?: readonly { readonly type?: string; readonly kv: KeyValue }[];
}

/** etcd reports within this time that it watches. */
const READY_MS_MAX = 5_000;
/** Inboxes whose last revision is known: a service listens for processes that come and go. */
const INBOXES_MAX = 10_000;

export function wakeStreamOn(gateway: Gateway, prefix: string): OpenWakeStream {
  /** By inbox: the revision after the last one that was received. */
  const nextRevision = new RecentMap<string, string>(INBOXES_MAX);

  return (inbox, onWake) => {
    const { url } = gateway;
    const controller = new AbortController();
    const inboxKeys = inboxPrefix(prefix, inbox);
    let onReady: () => void = () => undefined;
    const timer = systemClock.timer(READY_MS_MAX, () => end(`etcd at ${url} does not watch`));
    timer.keepAlive(false);
    const end = (why: string): void => controller.abort(new Error(why));

    function take({ header, created, canceled, compact_revision, cancel_reason, events }: WatchResult): void {
      if (compact_revision !== undefined && compact_revision !== '0') nextRevision.delete(inbox);
      if (canceled) {
        if (/permission/.test(cancel_reason ?? '')) {
          throw new UnsupportedError(`This user of etcd may not watch the keys below "${prefix}w/".`);
        }
        throw new Error(`etcd ended the watch: ${cancel_reason || 'its history was compacted'}.`);
      }
      if (header?.revision !== undefined) nextRevision.set(inbox, String(BigInt(header.revision) + 1n));
      for (const { type = 'PUT', kv } of events ?? []) {
        const why = textOf(kv.key).slice(inboxKeys.length);
        if (type === 'PUT' && isWhy(why) && !controller.signal.aborted) onWake(textOf(kv.value), why);
      }
      if (!created) return;
      timer.cancel();
      onReady();
    }

    async function read(): Promise<never> {
      try {
        const start_revision = nextRevision.get(inbox);
        const create_request = { ...rangeOf(inboxKeys), ...(start_revision && { start_revision }) };
        const stream = await gateway.stream(url, '/v3/watch', { create_request }, controller.signal);
        for await (const line of linesOf(stream)) {
          const { result, error } = JSON.parse(line) as {
            result?: WatchResult;
            error?: { message?: string };
          };
          if (!result) throw new Error(`etcd ended the watch: ${error?.message ?? 'no reason given'}.`);
          take(result);
        }
      } finally {
        timer.cancel();
        controller.abort();
      }
      throw new Error(`etcd at ${url} ended the stream of wake-ups.`);
    }

    const listening = new Promise<void>((resolve) => {
      onReady = resolve;
    });
    const reading = read();
    const ended = reading.catch((error: unknown) => error);
    return { url, ready: Promise.race([listening, reading]), ended, end };
  };
}

async function* linesOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const bytes of stream) {
    const lines = (text + decoder.decode(bytes, { stream: true })).split('\n');
    text = lines.pop() ?? '';
    yield* lines.filter((line) => line !== '');
  }
}
