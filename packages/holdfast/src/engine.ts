/**
 * For authors of servers on a store: commands that are sent until they are answered, and queues of waiters. The lock
 * service uses it. Programs that need locks use `createLocks`.
 */
export type { Moment } from './clock.js';
export { KeyQueue, type QueueOwner } from './queue/key-queue.js';
export { KeyQueues } from './queue/key-queues.js';
export type { Request } from './queue/request.js';
export type { NotGranted, Outcome, Waiter } from './queue/waiter.js';
export type { Answer } from './store-client/asked-command.js';
export { StoreClient } from './store-client/store-client.js';
