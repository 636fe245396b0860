/** The interface between the store and a client of any package. */
import type { Finding } from '../../protocol/index.js';
import type { OnListening } from '../clients/wake-up.js';
import type { OfflineGuard } from './offline-guard.js';

/** A script is named by its hash, or sent as text. */
export type Verb = 'evalsha' | 'eval';

/** One server, asked directly. */
export interface Server {
  send(...words: string[]): Promise<unknown>;
}

/** A connection that only listens. It reconnects by itself, and subscribes again. */
export interface Subscriber {
  /** Rejects when it cannot connect now. */
  connect(): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  /** Ends the connection if the store opened it; otherwise only removes the store's listeners. */
  close(): void | Promise<void>;
}

export type OnMessage = (channel: string, message: string) => void;

export interface Connection {
  /** Keys live on several servers, each of which runs scripts on its own keys only. */
  readonly isCluster: boolean;
  /** The prefix that the client itself adds to every key. */
  readonly keyPrefix: string;
  /** Throws if the client's settings make it unusable. */
  checkUsable(): void;
  /** Null for a client that does not report whether it is connected. */
  readonly offlineGuard: OfflineGuard | null;
  /** Runs a script on the server of the first key. Keys are without the client's own prefix. */
  run(verb: Verb, script: string, keys: readonly string[], texts: readonly string[]): Promise<unknown>;
  /** Every server that accepts writes. */
  servers(): Promise<readonly Server[]>;
  /** A connection of the store's own, not connected yet. */
  subscriber(onMessage: OnMessage, onListening: OnListening): Subscriber;
  /** The effects of the client's settings on locks. */
  settings(): readonly Finding[];
}

/** The pause before a lost connection of the store's own is opened again. */
export function reconnectMs(attempts: number): number {
  return Math.min(50 * (attempts + 1), 2_000);
}

/** The client's key prefix, which may be bytes. */
export function prefixOf(keyPrefix: string | Uint8Array | null | undefined): string {
  if (keyPrefix === undefined || keyPrefix === null) return '';
  return typeof keyPrefix === 'string' ? keyPrefix : Buffer.from(keyPrefix).toString('utf8');
}
