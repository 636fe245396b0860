/** The methods of a `Firestore` of @google-cloud/firestore, or of firebase-admin, that the store uses. */
export interface FirestoreClient {
  collection(path: string): FirestoreCollection;
}

/** A collection of a `FirestoreClient`. */
export interface FirestoreCollection {
  doc(id: string): FirestoreDocument;
  orderBy(field: string): FirestoreQuery;
}

/** A query over the documents of a collection. */
export interface FirestoreQuery {
  startAt(id: string): FirestoreQuery;
  endAt(id: string): FirestoreQuery;
  get(): Promise<{ readonly docs: readonly FirestoreSnapshot[] }>;
}

/** A reference to a document. */
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

/** The fields of a document. */
export type FirestoreFields = Record<string, string | number | Date>;

/** A document as it was read. */
export interface FirestoreSnapshot {
  readonly id: string;
  readonly exists: boolean;
  readonly updateTime?: FirestoreTimestamp | undefined;
  readonly readTime: FirestoreTimestamp;
  data(): Readonly<Record<string, unknown>> | undefined;
}

/** The result of a write. */
export interface FirestoreWrite {
  readonly writeTime: FirestoreTimestamp;
}

/** A time of the server. */
export interface FirestoreTimestamp {
  toMillis(): number;
}
