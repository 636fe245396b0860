/** The public names of the HTTP store: locks kept by a Holdfast service. See store.ts. */
export type { FetchLike, RequestLike, ResponseLike } from '../clients/fetch.js';
export type { HttpStoreOptions } from './options.js';
export { httpStore } from './store.js';
