/** The public names of the HTTP store: locks kept by a Holdfast service. See store.ts. */
export type { FetchLike, HttpStoreOptions, RequestLike, ResponseLike } from './options.js';
export { httpStore } from './store.js';
