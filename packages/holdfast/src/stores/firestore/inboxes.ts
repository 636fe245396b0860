/**
 * Wake-ups: a document per listening process, its inbox. A wake-up is written into one of its fields, and the process
 * listens to the document. Two wake-ups that get the same field at the same moment are one: waiters poll, too.
 */
import { systemClock } from '../../clock.js';
import type { Stop, Wake } from '../../protocol/index.js';
import { deliverWake, type OnListening, type OnWake } from '../clients/wake-up.js';
import { answered } from './answered.js';
import type { FirestoreCollection, FirestoreFields, FirestoreSnapshot } from './client.js';
import { deleteAfter } from './documents.js';
import { rethrow } from './errors.js';
import { idOf } from './escaped-id.js';
import { refusalOf } from './grpc-calls.js';

const FIELDS = 32;
const STOP_MS_MAX = 1_000;

export class Inboxes {
  readonly #inboxes: FirestoreCollection;
  readonly #stops = new Set<() => void>();
  #closed = false;
  /** The last error that no caller was told; undefined for none. */
  error: unknown;

  constructor(inboxes: FirestoreCollection) {
    this.#inboxes = inboxes;
  }

  /** Never throws, never waits. An inbox that is gone has nobody who listens. */
  send(key: string, wakes: readonly Wake[]): void {
    for (const { inbox, why } of wakes) {
      const field = `wake${Math.floor(systemClock.random() * FIELDS)}`;
      // The id makes it another value each time.
      const text = `${systemClock.randomId()} ${why}:${key}`;
      this.#inboxes
        .doc(idOf(inbox))
        .update(freshFields({ [field]: text }))
        .then(undefined, this.#onError);
    }
  }

  /** Resolves when the inbox is there: wake-ups that come before the listener's first snapshot are in that snapshot. */
  async listen(inbox: string, onWake: OnWake, onListening: OnListening): Promise<Stop> {
    const document = this.#inboxes.doc(idOf(inbox));
    await answered(document.set(freshFields({}))).catch(rethrow);
    if (this.#closed) throw new Error('The store was closed before it could listen.');
    let seen: ReturnType<FirestoreSnapshot['data']> = {};
    const onSnapshot = (snapshot: FirestoreSnapshot): void => {
      // Deleted by a TTL policy.
      if (!snapshot.exists && this.#stops.has(stop)) {
        document.set(freshFields({})).then(undefined, this.#onError);
      }
      const fields = snapshot.data() ?? {};
      for (const [name, text] of Object.entries(fields)) {
        if (typeof text !== 'string' || text === seen?.[name]) continue;
        deliverWake(text.slice(text.indexOf(' ') + 1), ':', onWake);
      }
      seen = fields;
    };
    // The client reconnects by itself. An error is a refusal, and waiters poll from then on.
    const unsubscribe = document.onSnapshot(onSnapshot, (error) => {
      this.error = error;
      onListening(false);
    });
    const stop = (): void => {
      if (this.#stops.delete(stop)) unsubscribe();
    };
    this.#stops.add(stop);
    return async () => {
      stop();
      await Promise.allSettled([answered(document.delete(), STOP_MS_MAX)]);
    };
  }

  close(): void {
    this.#closed = true;
    for (const stop of this.#stops) stop();
  }

  readonly #onError = (error: unknown): void => {
    if (refusalOf(error) !== 'missing') this.error = error;
  };
}

function freshFields(fields: FirestoreFields): FirestoreFields {
  return { ...fields, deleteAfter: deleteAfter(systemClock.wallMs()) };
}
