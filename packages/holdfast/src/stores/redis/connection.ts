/** What the store needs of a client, whichever package it comes from. */
import type { Finding } from '../../protocol/index.js';
import type { Gate } from './gate.js';

/** How a script is named: by what it is called on the server, or by its text. */
export type Verb = 'evalsha' | 'eval';

/** One server, asked directly. */
export interface Server {
  send(...words: string[]): Promise<unknown>;
}

/** A connection that only listens. It comes back by itself when it breaks, and listens again. */
export interface Subscriber {
  /** Rejects when it cannot be connected now. */
  connect(): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  /** Ends it if the store opened it; else only hears no more. */
  close(): void | Promise<void>;
}

export type Heard = (channel: string, message: string) => void;
/** Told when the connection breaks, and when it is back. */
export type Hears = (hearing: boolean) => void;

export interface Connection {
  /** Keys live on several servers, each of which runs scripts on its own keys only. */
  readonly isCluster: boolean;
  /** What the client itself puts before every key. */
  readonly keyPrefix: string;
  /** Throws a clear word where the client cannot be used as it is. */
  checkUsable(): void;
  /** Null for a client that does not tell whether it is connected. */
  readonly gate: Gate | null;
  /** Runs a script where the first key is. The keys are without the client's own prefix. */
  run(verb: Verb, script: string, keys: readonly string[], texts: readonly string[]): Promise<unknown>;
  /** Every server that keys may be written to. */
  servers(): Promise<readonly Server[]>;
  /** A connection of the store's own, not connected yet. */
  subscriber(heard: Heard, hears: Hears): Subscriber;
  /** What the client's own settings mean for locks. */
  settings(): readonly Finding[];
}

/** How long a lost connection of the store's own stays away before it tries again. */
export function reconnectMs(attempts: number): number {
  return Math.min(50 * (attempts + 1), 2_000);
}

/** A key prefix may be bytes. */
export function prefixOf(keyPrefix: string | Uint8Array | null | undefined): string {
  if (keyPrefix === undefined || keyPrefix === null) return '';
  return typeof keyPrefix === 'string' ? keyPrefix : Buffer.from(keyPrefix).toString('utf8');
}

/** The subscription is made again by the client, and every waiter asks by itself now and then. */
export function ignoreConnectionErrors(error: unknown): unknown {
  return error;
}
