/**
 * Documents as records: created only where there is none, and updated only if the last update was at the time seen. Update
 * times rise with every change, also over a deletion, so none comes back.
 *
 *   id            the key (escaped-id.ts)
 *   lock          the state as JSON. One field: Firestore writes an index entry for every field
 *   deleteAfter   two days after the last use, for a TTL policy. Nothing is decided by it
 */
import { systemClock } from '../../clock.js';
import {
  checkVersion,
  EMPTY_STATE,
  expendableAt,
  type State,
  UnsupportedError,
} from '../../protocol/index.js';
import { answered } from '../clients/answered.js';
import { idOf } from '../clients/escaped-id.js';
import { refusalOf } from '../clients/grpc-calls.js';
import type { Register } from '../compare-and-swap/register.js';
import type { FirestoreCollection, FirestoreSnapshot, FirestoreTimestamp } from './client.js';
import { explainedError, explainedWriteError } from './errors.js';
import type { FirestoreTime } from './firestore-time.js';

const KEPT_MS = 2 * 24 * 60 * 60 * 1_000;

/** Null: there is no document. */
type Version = FirestoreTimestamp | null;
/** `checkOpen`: a read on a client that was terminated would be an unhandled rejection of the client. */
type Parts = Required<Pick<Register<Version>, 'wake'>> & { checkOpen(): void };

export function documentRegister(
  locks: FirestoreCollection,
  time: FirestoreTime,
  { wake, checkOpen }: Parts,
): Register<Version> {
  return {
    absent: { state: null, version: null, lateMs: 0 },
    repeats: true,
    wake,
    async read(key) {
      checkOpen();
      try {
        const document = await answered('Firestore', locks.doc(idOf(key)).get());
        time.noteAtLeast(systemClock.monotonicMs(), document.readTime.toMillis());
        return { state: stateIn(document, key), version: document.updateTime ?? null, lateMs: 0 };
      } catch (error) {
        throw explainedError(error, key);
      }
    },
    async write(key, next, { version: seen }, now) {
      const document = locks.doc(idOf(key));
      const usedUntil = Math.max(now, expendableAt(next));
      const fields = { lock: JSON.stringify(next), deleteAfter: deleteAfter(usedUntil) };
      try {
        const version = await time.timed(() =>
          seen ? document.update(fields, { lastUpdateTime: seen }) : document.create(fields),
        );
        return { kind: 'written', version, lateMs: 0 };
      } catch (error) {
        const refusal = refusalOf(error);
        if (refusal === 'changed' || refusal === 'missing') return { kind: 'changed', found: null };
        throw explainedWriteError(error, key);
      }
    },
  };
}

export function deleteAfter(usedMs: number): Date {
  return new Date(usedMs + KEPT_MS);
}

/** Whether the document is a lock: others may be in the collection. */
export function isLock(document: FirestoreSnapshot): boolean {
  return typeof document.data()?.lock === 'string';
}

/** Throws an `UnsupportedError` for a document that is not a lock, or has a newer format. */
export function stateIn(document: FirestoreSnapshot | undefined, key: string): State | null {
  if (!document?.exists) return null;
  if (!isLock(document)) {
    throw new UnsupportedError(
      `The document of "${key}" is not a lock of Holdfast. Use a separate collection for locks. Nothing was changed.`,
      { key },
    );
  }
  const state = JSON.parse(String(document.data()?.lock)) as State;
  checkVersion(state.version, key);
  return { ...EMPTY_STATE, ...state };
}
