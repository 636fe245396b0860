/** Layouts of other software in Firestore, for the option `layout` of `firestoreStore`. */
import { centralLayout } from '../compare-and-swap/central-layout.js';

/** Other software whose documents the store can use. `holdfast/firestore/layouts` exports all that there are. */
export interface FirestoreLayout {
  readonly store: 'firestore';
  /** As in URLs: `?layout=lock-service-central`. */
  readonly name: string;
}

/** The documents of LockServiceCentral. */
export const lockServiceCentral: FirestoreLayout = centralLayout('firestore');
