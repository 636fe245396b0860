/** What a fault case needs to know of an engine: the same cases run on all of them. */
import type { Driver } from './drivers.js';

/** A private server that a case may break. */
export interface Server {
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** SIGSTOP on all of it: connections stay, nothing is answered. */
  pause(): Promise<void> | void;
  resume(): Promise<void> | void;
  /** Ends it and starts it again on the same port, with what it keeps over a restart. */
  restart(): Promise<void>;
  stop(): Promise<void>;
  /** Cuts the connections on which processes hear hints; how many there were. */
  cutListeners(): Promise<number>;
}

export interface World {
  readonly name: string;
  readonly driver: Driver;
  /** Whether locks outlive a restart of the server. */
  readonly durable: boolean;
  start(): Promise<Server>;
}
