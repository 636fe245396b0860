/** The methods of a `Firestore` of @google-cloud/firestore, or of firebase-admin, that the store uses. */
export interface FirestoreClient {
  collection(path: string): FirestoreCollection;
}

export interface FirestoreCollection {
  doc(id: string): FirestoreDocument;
  orderBy(field: string): FirestoreQuery;
}

export interface FirestoreQuery {
  startAt(id: string): FirestoreQuery;
  endAt(id: string): FirestoreQuery;
  get(): Promise<{ readonly docs: readonly FirestoreSnapshot[] }>;
}

export interface FirestoreDocument {
  get(): Promise<FirestoreSnapshot>;
  create(fields: FirestoreFields): Promise<FirestoreWrite>;
  set(fields: FirestoreFields): Promise<FirestoreWrite>;
  update(
    fields: FirestoreFields,
    precondition?: { readonly lastUpdateTime?: FirestoreTimestamp },
  ): Promise<FirestoreWrite>;
  delete(): Promise<unknown>;
  /** Reconnects by itself; `onError` is the end of it. */
  onSnapshot(onNext: (snapshot: FirestoreSnapshot) => void, onError: (error: Error) => void): () => void;
}

export type FirestoreFields = Record<string, string | Date>;

export interface FirestoreSnapshot {
  readonly id: string;
  readonly exists: boolean;
  readonly updateTime?: FirestoreTimestamp | undefined;
  readonly readTime: FirestoreTimestamp;
  data(): Readonly<Record<string, unknown>> | undefined;
}

export interface FirestoreWrite {
  readonly writeTime: FirestoreTimestamp;
}

export interface FirestoreTimestamp {
  toMillis(): number;
}
