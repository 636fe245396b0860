/** The HTTP store: locks through a Holdfast service. See store.ts for how it works. */
import type { Store } from '../../protocol/index.js';
import { checkOptions, type HttpStoreOptions } from './options.js';
import { storeOver } from './store.js';

export type { FetchLike, RequestLike, ResponseLike } from './client.js';
export type { HttpStoreOptions } from './options.js';

/**
 * Locks kept by a Holdfast service, for those who cannot or should not talk to its store. Several urls are services on
 * one and the same store: while one does not answer, the next is asked.
 */
export function httpStore(options: HttpStoreOptions): Store {
  return storeOver(checkOptions(options));
}
