/**
 * Documents as records: created only where there is none, and updated only if the last update was at the time seen. Update
 * times rise with every change, also over a deletion, so none comes back.
 *
 *   id            the key (escaped-id.ts)
 *   lock          the state as JSON. One field: Firestore writes an index entry for every field
 *   deleteAfter   two days after the last use, for a TTL policy. Nothing is decided by it
 *
 * In documents of LockServiceCentral the last one is `ttl`, as there.
 */
import { systemClock } from '../../clock.js';
import { checkVersion, EMPTY_STATE, type State, type Wake } from '../../protocol/index.js';
import {
  type Fields,
  type FoundRecord,
  NotALockError,
  type PutOutcome,
  parsedObject,
  type RecordLayout,
  type RecordTable,
} from '../compare-and-swap/records.js';
import { answered } from './answered.js';
import type {
  FirestoreCollection,
  FirestoreFields,
  FirestoreSnapshot,
  FirestoreTimestamp,
} from './client.js';
import { explainedError, explainedWriteError } from './errors.js';
import { idOf, keyOf } from './escaped-id.js';
import type { FirestoreTime } from './firestore-time.js';
import { refusalOf } from './grpc-calls.js';

const KEPT_MS = 2 * 24 * 60 * 60 * 1_000;

/** Null: there is no document. */
type Version = FirestoreTimestamp | null;

export const nativeDocuments: RecordLayout = {
  idOf,
  startOf: idOf,
  keyIn: keyOf,
  encode: (_key, state) => ({ lock: JSON.stringify(state) }),
  decode(key, fields) {
    const state = parsedObject(fields.lock);
    if (!state) {
      throw new NotALockError(
        `The document of "${key}" is not a lock of Holdfast. Use a separate collection for locks. Nothing was changed.`,
        key,
      );
    }
    checkVersion(state.version, key);
    return { ...EMPTY_STATE, ...(state as Partial<State>) };
  },
};

interface Parts {
  readonly locks: FirestoreCollection;
  readonly time: FirestoreTime;
  readonly layout: RecordLayout;
  /** The field of the TTL policy. */
  readonly ttlField: string;
  wake(key: string, wakes: readonly Wake[]): void;
  /** A read on a client that was terminated would be an unhandled rejection of the client. */
  checkOpen(): void;
}

export function documentTable({
  locks,
  time,
  layout,
  ttlField,
  wake,
  checkOpen,
}: Parts): RecordTable<Version> {
  return {
    absent: null,
    repeats: true,
    wake,
    async get(key): Promise<FoundRecord<Version>> {
      checkOpen();
      try {
        const document = await answered(locks.doc(layout.idOf(key)).get());
        time.noteAtLeast(systemClock.monotonicMs(), document.readTime.toMillis());
        return { fields: fieldsIn(document), version: document.updateTime ?? null };
      } catch (error) {
        throw explainedError(error, key);
      }
    },
    async put(key, record, seen, { untilMs }): Promise<PutOutcome<Version>> {
      const document = locks.doc(layout.idOf(key));
      const fields = { ...record, [ttlField]: deleteAfter(untilMs) } as FirestoreFields;
      try {
        const version = await time.timed(() =>
          seen ? document.update(fields, { lastUpdateTime: seen }) : document.create(fields),
        );
        return { kind: 'written', version };
      } catch (error) {
        const refusal = refusalOf(error);
        if (refusal === 'changed' || refusal === 'missing') return { kind: 'changed', found: null };
        throw explainedWriteError(error, key);
      }
    },
  };
}

/** Null where there is no document. A client with `useBigInt` returns every whole number as a BigInt, which layouts do not expect. */
export function fieldsIn(document: FirestoreSnapshot): Fields | null {
  const fields = document.data();
  if (!fields) return null;
  const plain = Object.entries(fields).map(([name, value]) => [
    name,
    typeof value === 'bigint' ? Number(value) : value,
  ]);
  return Object.fromEntries(plain) as Fields;
}

export function deleteAfter(usedMs: number): Date {
  return new Date(usedMs + KEPT_MS);
}
