/** The store contract: what an engine has to offer to keep locks. */
import type { Command, HolderView, Reply, WaiterView, Why } from './commands.js';
import type { HoldId } from './state.js';

/** What a store can do, known without asking its server. */
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
  /** Where it can prove a holder dead before its ttl: how often the waiters in front should ask. Null where it cannot. */
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

/** Every store applies all of it: paging through a store that ignores `after` would never end. */
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
  /** Its time at the moment it was asked. */
  readonly now: number;
  /** What is good about this server, and what is not. */
  readonly findings: readonly Finding[];
}

/** Ends what it was returned for, such as listening. */
export type Stop = () => Promise<void>;

/** Who holds a lock in the records of LockServiceCentral: an owner and an instance of it, both as they are stored. */
export interface Instance {
  readonly owner: string;
  /** A secret of the client. */
  readonly instanceId: string;
}

/** A lock as such a record has it, in whole seconds. */
export interface InstanceLease extends Instance {
  /** With all renewals since it was acquired. */
  readonly leaseDuration: number;
  /** Epoch seconds. The second named still belongs to the lock. */
  readonly expiry: number;
}

/** The outcome of the renewal of an instance. */
export type InstanceRenewal =
  | { readonly kind: 'renewed'; readonly lease: InstanceLease }
  | { readonly kind: 'lost' }
  /** Nothing was changed: so many seconds would have been left, more than allowed. */
  | { readonly kind: 'too-long'; readonly seconds: number };

/**
 * Locks whose holder is an instance instead of a hold, for services with the contract of LockServiceCentral. Every
 * operation is one conditional write of the record that LockServiceCentral reads and writes, too.
 *
 * `operation` is a random text that the caller makes for each call, so that a write that was sent twice counts once.
 * As in `apply`, a rejection means that nobody can know what happened.
 */
export interface InstanceLocks {
  /** Null when nobody holds the key. */
  read(key: string): Promise<InstanceLease | null>;
  /** Also over a lease of the same instance, which may get shorter by it. Null: another holds the key. */
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
 * Applies a batch; one promise a command, each settling alone. Commands of one key apply in order.
 * A rejection means that nobody can know what happened to that command, unless it is a `NotExecutedError` or an
 * `UnsupportedError`: then it was certainly not executed.
 */
export interface Apply {
  (commands: readonly Command[]): readonly Promise<Reply>[];
  /**
   * Only where a reply is there when the call returns, and cannot be lost: the same without promises. An error stands for
   * a rejection. Whoever uses it sends each command once, so nothing has to be remembered of holds that are released.
   * A wrapper that replaces `apply` replaces this, too.
   */
  readonly atOnce?: (commands: readonly Command[]) => readonly (Reply | Error)[];
}

/** A store keeps the locks. Made by `redisStore(client)`, `openStore(url)` and the like. */
export interface Store {
  /** The kind of store, for messages. */
  readonly name: string;
  /** What it can do. */
  readonly traits: Traits;
  /** Applies commands, each atomically; those of one key in their order. */
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
   * Only where the store can prove that a holder's process is gone: from now on only the ttl ends this hold, until a
   * process renews it. The process that renews it is then the holder's.
   */
  handOff?(hold: HoldId): Promise<void>;
  /** Only where the records are those of LockServiceCentral. The same keys, and the same locks as those of `apply`. */
  readonly instances?: InstanceLocks;
  /** Null when nobody holds the key and nobody waits for it. */
  read(key: string): Promise<Snapshot | null>;
  /**
   * Keys that somebody holds or waits for, in the order of `compareKeys`: by code points, as UTF-8's bytes sort. Rejects at
   * a record that it cannot read, such as one of a newer format, after the keys before it.
   */
  list(query: ListQuery): AsyncIterable<Snapshot>;
  /** The promises that this server, as configured, really keeps. */
  probe(): Promise<Guarantees>;
  /** Afterwards no call works, and nothing keeps the process alive. Closing twice is fine. */
  close(): Promise<void>;
}
