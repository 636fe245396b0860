/** The client behind a URL. */
import { type Candidate, importError } from '../clients/opened-client.js';
import type { FirestoreClient } from './client.js';

type OpenClient = (settings: object) => FirestoreClient & { terminate(): Promise<void> };

export const FIRESTORE_CLIENTS: readonly Candidate<OpenClient>[] = [
  {
    name: '@google-cloud/firestore',
    async load() {
      try {
        const { Firestore } = await import('@google-cloud/firestore');
        return (settings) => new Firestore(settings);
      } catch (error) {
        throw importError('@google-cloud/firestore', error);
      }
    },
  },
];
