/** The store contract: the operations that an engine has to offer to keep locks. */
import type { Command, HolderView, Reply, WaiterView, Why } from './commands.js';
import type { HoldId } from './state.js';

/** The abilities of a store, known without asking its server. */
export interface Traits {
  /** Whose clock decides: the server's, this machine's, or an estimate of the server's. */
  readonly clock: 'store' | 'machine' | 'estimate';
  /** How far that clock may be off, in milliseconds. */
  readonly clockErrorMs: number;
  /** Whether `listen` brings wake-ups. */
  readonly push: boolean;
  /** Whether it keeps a queue of waiters. */
  readonly queue: boolean;
  /** Who can share it. */
  readonly shared: 'process' | 'machine' | 'network';
  /** Whether locks outlive a restart of the store. */
  readonly durable: boolean;
  /** How often the waiters in front should poll, if the store can prove a holder dead before its ttl. Otherwise null. */
  readonly livenessPollMs: number | null;
  /**
   * Whether every read and every list costs money, a list as much as all stored keys. Dashboards and health checks then
   * read rarely or not at all. Default false.
   */
  readonly metered?: boolean;
}

/** One key as anybody may see it, without expired holders and waiters. */
export interface Snapshot {
  readonly key: string;
  /** The store's time of this view. */
  readonly now: number;
  /** The highest token reserved so far. */
  readonly token: number;
  readonly holders: readonly HolderView[];
  readonly waiters: readonly WaiterView[];
}

/** A store has to apply all members: paging through a store that ignores `after` would never end. */
export interface ListQuery {
  /** Only keys that start with this; '' for all. */
  readonly prefix: string;
  /** At most this many, the first ones. */
  readonly limit?: number;
  /** Only keys that sort after this one, whether it is in use or not. */
  readonly after?: string;
}

/** One promise that this server, as configured, keeps or does not keep. */
export interface Finding {
  /** `good`: as it should be; `note`: worth knowing; `warning`: locks may be lost. */
  readonly level: 'good' | 'note' | 'warning';
  /** A sentence for people. */
  readonly text: string;
}

/** The result of `probe`: what a store promises as its server is configured. */
export interface Guarantees {
  /** The server, with its version. */
  readonly server: string;
  /** The server's time when it was asked. */
  readonly now: number;
  /** The promises that it keeps, and those that it does not keep. */
  readonly findings: readonly Finding[];
}

/** Ends an activity of the store, such as listening. */
export type Stop = () => Promise<void>;

/** A holder in the records of LockServiceCentral: an owner and an instance of it, both as they are stored. */
export interface Instance {
  readonly owner: string;
  /** A secret of the client. */
  readonly instanceId: string;
}

/** A lock as such a record has it, in whole seconds. */
export interface InstanceLease extends Instance {
  /** With all renewals since it was acquired. */
  readonly leaseDuration: number;
  /** Epoch seconds. The lock includes this second. */
  readonly expiry: number;
}

/** The outcome of the renewal of an instance. */
export type InstanceRenewal =
  | { readonly kind: 'renewed'; readonly lease: InstanceLease }
  | { readonly kind: 'lost' }
  /** Nothing was changed: `seconds` would have been left, more than allowed. */
  | { readonly kind: 'too-long'; readonly seconds: number };

/**
 * Locks whose holder is an instance instead of a hold, for services with the contract of LockServiceCentral. Every
 * operation is one conditional write of the record that LockServiceCentral reads and writes, too.
 *
 * `operation` is a random text that the caller makes for each call, so that a write that was sent twice counts once. As in
 * `apply`, a rejection means that the outcome is unknown.
 */
export interface InstanceLocks {
  /** Null when nobody holds the key. */
  read(key: string): Promise<InstanceLease | null>;
  /** Also replaces a lease of the same instance, even by a shorter one. Null when another holds the key. */
  acquire(key: string, instance: Instance, seconds: number, operation: string): Promise<InstanceLease | null>;
  /** Adds to the lease and to its expiry, unless more than `secondsMax` would be left. */
  renew(
    key: string,
    instance: Instance,
    seconds: number,
    secondsMax: number,
    operation: string,
  ): Promise<InstanceRenewal>;
  /** `not-held`: nobody held the key. `busy`: another does. */
  release(key: string, instance: Instance, operation: string): Promise<'released' | 'not-held' | 'busy'>;
}

/**
 * Applies a batch. Returns one promise per command, and each settles alone. Commands of one key apply in order. A
 * rejection means that the outcome of that command is unknown, unless it is a `NotExecutedError` or an `UnsupportedError`:
 * then it was certainly not executed.
 */
export interface Apply {
  (commands: readonly Command[]): readonly Promise<Reply>[];
  /**
   * The same without promises. Only for stores whose replies are there when the call returns, and cannot be lost. An error
   * stands for a rejection. Each command is sent once, so the store need not remember released holds. A wrapper that
   * replaces `apply` has to replace this, too.
   */
  readonly atOnce?: (commands: readonly Command[]) => readonly (Reply | Error)[];
}

/** A store keeps the locks. Made by `redisStore(client)`, `openStore(url)` and the like. */
export interface Store {
  /** The kind of store, for messages. */
  readonly name: string;
  /** What it can do. */
  readonly traits: Traits;
  /** Applies each command atomically, and the commands of one key in order. */
  apply: Apply;
  /**
   * Brings wake-ups for an inbox until stopped. They may be lost, late or doubled. When the store notices that they no
   * longer arrive, or arrive again, it calls `onListening`: meanwhile waiters ask more often.
   */
  listen?(
    inbox: string,
    wake: (key: string, why: Why) => void,
    onListening?: (isListening: boolean) => void,
  ): Promise<Stop>;
  /**
   * Only for stores that can prove that a holder's process is gone. From now on only the ttl ends this hold, until a
   * process renews it. That process is then the holder's.
   */
  handOff?(hold: HoldId): Promise<void>;
  /** Only for stores with the records of LockServiceCentral. Keys and locks are the same as those of `apply`. */
  readonly instances?: InstanceLocks;
  /** Null when the key has no holder and no waiter. */
  read(key: string): Promise<Snapshot | null>;
  /**
   * Yields the keys with holders or waiters, in the order of `compareKeys`: by code points, as UTF-8's bytes sort. Rejects
   * at a record that it cannot read, such as one of a newer format, after the keys before it.
   */
  list(query: ListQuery): AsyncIterable<Snapshot>;
  /** The promises that this server, as configured, really keeps. */
  probe(): Promise<Guarantees>;
  /** Afterwards no call works, and nothing keeps the process alive. Closing twice is fine. */
  close(): Promise<void>;
}
