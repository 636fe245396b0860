/** The queues of one process on one store, by key. Wake-ups go to the queue of their key. */

import type { Why } from '../protocol/commands.js';
import type { HoldId } from '../protocol/state.js';
import type { StoreClient } from '../store-client/store-client.js';
import type { WakeReceiver } from '../store-client/wake-listener.js';
import { AbortListeners } from './abort-listeners.js';
import type { KeyQueue, QueueOwner } from './key-queue.js';
import type { Request } from './request.js';
import type { NotGranted } from './waiter.js';

/** The queues of all keys with waiters in this process. */
export abstract class KeyQueues<R extends Request, G, Q extends KeyQueue<R, G>>
  implements QueueOwner<R, G>, WakeReceiver
{
  readonly client: StoreClient;
  readonly aborts = new AbortListeners();
  protected queues = new Map<string, Q>();

  constructor(client: StoreClient) {
    this.client = client;
    client.wakes.receiver = this;
  }

  abstract readonly newHold: (request: Request) => HoldId;

  /** A copy, because queues may end while the caller goes through them. */
  all(): readonly Q[] {
    return [...this.queues.values()];
  }

  forget(queue: KeyQueue<R, G>): void {
    if (this.queues.get(queue.key) !== queue) return;
    // V8 links the tables that a map has outgrown, and their entries stay in memory until a major garbage collection.
    if (this.queues.size === 1) this.queues = new Map();
    else this.queues.delete(queue.key);
  }

  /** Ends all waiting with this outcome. */
  endWaiting(outcome: NotGranted): void {
    for (const queue of this.all()) queue.close(outcome);
  }

  onWake(key: string, why: Why): void {
    this.queues.get(key)?.wake(why);
  }

  onWakeAll(): void {
    for (const queue of this.all()) queue.wake('turn');
  }
}
