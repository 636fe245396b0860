/** The public names of the Firestore store. See store.ts. */
export type * from './client.js';
export type { FirestoreLayout } from './layouts.js';
export { type FirestoreStoreOptions, firestoreStore } from './store.js';
