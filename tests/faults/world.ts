/** What a fault case needs to know of an engine: the same cases run on all of them. */
import type { Driver } from './drivers.js';

/** Where a case has its locks: nobody else uses it. */
export interface Place {
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** Cuts the connections on which processes hear hints; how many there were. */
  cutListeners(): Promise<number>;
  stop(): Promise<void>;
}

/** A private server that a case may break. */
export interface Server extends Place {
  /** SIGSTOP on all of it: connections stay, nothing is answered. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Ends it and starts it again on the same port, with what it keeps over a restart. */
  restart(): Promise<void>;
  /** SIGKILL; `restart` then starts it again. */
  kill(): Promise<void>;
}

export interface World {
  readonly name: string;
  readonly driver: Driver;
  /** Whether locks outlive a restart of the server. */
  readonly durable: boolean;
  /**
   * For how long at most contenders leave the key alone after a turn; a moment unless told. Where the store keeps no
   * line, those who came back at once would starve the rest.
   */
  readonly restMs?: number;
  /**
   * How long contenders wait for a turn. Default 3 s. Where a turn takes long, those who gave up and came back would stay at
   * the end of the queue.
   */
  readonly waitMs?: number;
  /** Whether a key has one holder at most: semaphores are left out. */
  readonly exclusive?: boolean;
  /** Whether all cases have the same server: those that break it come one after the other. */
  readonly oneServer?: boolean;
  /** Whether its clients speak HTTP/2. */
  readonly http2?: boolean;
  /** A server for a case that breaks it. */
  startServer(): Promise<Server>;
  /** For a case that leaves the server alone: it may be shared with others, until `close`. */
  openPlace(): Promise<Place>;
  close(): Promise<void>;
}
