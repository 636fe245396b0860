/** The store contract: what an engine has to offer to keep locks. */
import type { Command, HolderView, Reply, WaiterView, Why } from './commands.js';
import type { HoldId } from './state.js';

export interface Traits {
  /** Whose clock decides: the server's, this machine's, or an estimate of the server's. */
  readonly clock: 'store' | 'machine' | 'estimate';
  /** How far that clock may be off, in milliseconds. */
  readonly clockErrorMs: number;
  /** Whether `listen` brings hints. */
  readonly push: boolean;
  /** Whether it keeps a line of waiters. */
  readonly queue: boolean;
  /** Who can share it. */
  readonly shared: 'process' | 'machine' | 'network';
  /** Whether locks outlive a restart of the store. */
  readonly durable: boolean;
  /** Where it can prove a holder dead before its ttl: how often those in front of the line should ask. */
  readonly vigilMs: number | null;
  /**
   * Whether every read and every list costs money, a list as much as all that is stored. Whoever looks without having
   * been asked to, such as a dashboard or a health check, then looks rarely or not at all. Default false.
   */
  readonly metered?: boolean;
}

/** One key as anybody may see it, without what has expired. */
export interface Snapshot {
  readonly key: string;
  /** The store's time of this view. */
  readonly now: number;
  /** The highest token reserved so far. */
  readonly token: number;
  readonly holders: readonly HolderView[];
  readonly waiters: readonly WaiterView[];
}

/** Every store goes by all of it: who pages through one that takes no notice of `after` never comes to an end. */
export interface ListQuery {
  /** Only keys that start with this; '' for all. */
  readonly prefix: string;
  /** At most so many: the first of them. */
  readonly limit?: number;
  /** Only keys that sort behind this one, whether it is in use or not. */
  readonly after?: string;
}

/** One thing that this server, as configured, promises or does not. */
export interface Finding {
  readonly level: 'good' | 'note' | 'warning';
  readonly text: string;
}

export interface Guarantees {
  /** What answers, with its version. */
  readonly server: string;
  /** Its time at the moment it was asked. */
  readonly now: number;
  readonly findings: readonly Finding[];
}

export type Stop = () => Promise<void>;

export interface Store {
  readonly name: string;
  readonly traits: Traits;
  /**
   * Applies a batch; one promise a command, each settling alone. Commands of one key apply in order.
   * A rejection means that nobody can know what happened to that command.
   */
  apply(commands: readonly Command[]): readonly Promise<Reply>[];
  /**
   * Brings hints for an inbox until stopped. Hints may be lost, late or doubled. Where the store notices that they no
   * longer come, or come again, it says so to `hears`: meanwhile waiters ask more often.
   */
  listen?(
    inbox: string,
    wake: (key: string, why: Why) => void,
    hears?: (hearing: boolean) => void,
  ): Promise<Stop>;
  /**
   * Only where the store can prove that a holder's process is gone: from now on that ends this hold no more, only its
   * ttl does, until a process renews it. Whoever renews it then stands behind it.
   */
  handOff?(hold: HoldId): Promise<void>;
  /** Null when nobody holds the key and nobody waits for it. */
  read(key: string): Promise<Snapshot | null>;
  /** Keys that somebody holds or waits for, in the order of `compareKeys`: by code points, as UTF-8's bytes sort. */
  list(query: ListQuery): AsyncIterable<Snapshot>;
  /** What this server, as configured, really promises. */
  probe(): Promise<Guarantees>;
  /** Afterwards nothing works, and nothing of it keeps the process alive. Closing twice is fine. */
  close(): Promise<void>;
}
