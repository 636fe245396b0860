/** NATS as the store's tests need it: connections that end with what they were opened for, and a look at the bucket. */
import { connect, headers, type MsgHdrs, type NatsConnection } from '@nats-io/transport-node';
import { WAITERS_MAX } from 'holdfast/compare-and-swap';
import { type NatsStoreOptions, natsStore } from 'holdfast/nats';
import type { Store } from 'holdfast/protocol';
import type { Harness } from 'holdfast/testkit';

export { claimOf, releaseOf, runSuite, say } from '../store-talk.js';

export function connectTo(...urls: readonly string[]): Promise<NatsConnection> {
  return connect({
    servers: [...urls],
    maxReconnectAttempts: -1,
    reconnectTimeWait: 50,
    noAsyncTraces: true,
  });
}

/** Where a lock lies, for names that stay as they are. */
export function subjectOf(key: string, bucket = 'holdfast'): string {
  return `$KV.${bucket}.${key.replaceAll(':', '=3A')}`;
}

export function headersOf(values: Readonly<Record<string, string>>): MsgHdrs {
  const made = headers();
  for (const [name, value] of Object.entries(values)) made.set(name, value);
  return made;
}

export interface Answer {
  readonly error?: { readonly err_code: number; readonly description: string };
  readonly success?: boolean;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly state?: {
    readonly messages: number;
    readonly last_seq?: number;
    readonly subjects?: Readonly<Record<string, number>>;
  };
  readonly cluster?: { readonly leader?: string };
  readonly message?: { readonly seq: number; readonly data?: string; readonly time: string };
}

export async function api(connection: NatsConnection, call: string, question?: object): Promise<Answer> {
  const payload = question === undefined ? '' : JSON.stringify(question);
  const answer = await connection.request(`$JS.API.${call}`, payload, { timeout: 5_000 });
  return answer.json<Answer>();
}

/** What lies under a key of the bucket; null for nothing. */
export async function recordOf(
  connection: NatsConnection,
  key: string,
  bucket = 'holdfast',
): Promise<{ readonly seq: number; readonly text: string; readonly storedAt: number } | null> {
  const question = { last_by_subj: subjectOf(key, bucket) };
  const { message } = await api(connection, `STREAM.MSG.GET.KV_${bucket}`, question);
  if (!message) return null;
  const text = Buffer.from(message.data ?? '', 'base64').toString();
  return { seq: message.seq, text, storedAt: Date.parse(message.time) };
}

/** A store whose connection ends with it. */
export async function openStore(urls: readonly string[], options: NatsStoreOptions = {}): Promise<Store> {
  const connection = await connectTo(...urls);
  const store = natsStore(connection, options);
  return {
    ...store,
    async close() {
      await store.close();
      await connection.close();
    },
  };
}

export function harnessOf(
  name: string,
  urls: () => readonly string[],
  plain: () => NatsConnection,
  options: NatsStoreOptions = {},
): Harness {
  return {
    name,
    // The error of the estimate on both sides, and what a busy machine adds to a round trip.
    doubtMs: 60,
    lineMax: WAITERS_MAX,
    open: () => openStore(urls(), options),
    async forget(key) {
      const record = await recordOf(plain(), key);
      if (record) await api(plain(), 'STREAM.MSG.DELETE.KV_holdfast', { seq: record.seq });
    },
    async spoil(key) {
      await plain().request(subjectOf(key), JSON.stringify({ v: 2, anything: 'else' }));
    },
  };
}

export interface Tapped {
  readonly connection: NatsConnection;
  /** The subjects of all requests since it was last emptied. */
  readonly calls: string[];
  /** Called before each request; what it throws is its outcome. */
  before: (subject: string) => void | Promise<void>;
  /** Called after each answer, before it is handed on. */
  after: (subject: string) => void | Promise<void>;
}

/** A connection that one can look into, and break. */
export function tapped(connection: NatsConnection): Tapped {
  const tap: Tapped = {
    calls: [],
    before: () => undefined,
    after: () => undefined,
    connection: new Proxy(connection, {
      get(target, name) {
        if (name === 'request') {
          return async (...args: Parameters<NatsConnection['request']>) => {
            tap.calls.push(args[0]);
            await tap.before(args[0]);
            const answer = await target.request(...args);
            await tap.after(args[0]);
            return answer;
          };
        }
        // So that writes go by `request`, where the tap is.
        if (name === 'subscribe') {
          return (...args: Parameters<NatsConnection['subscribe']>) => {
            if (args[0].startsWith('_INBOX.')) throw new Error('Not on this connection.');
            return target.subscribe(...args);
          };
        }
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    }),
  };
  return tap;
}
