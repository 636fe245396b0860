/**
 * Locks in a collection of Cloud Firestore, in Native mode.
 *
 * Layout: one document per key (documents.ts), and one per listening process in a collection beside it (inboxes.ts).
 *
 * Atomic: this process decides, with `decide`, and Firestore stores the result only if the document was last updated
 * when the one decided on was. Reads are strongly consistent.
 *
 * Clock: Firestore's commit times, estimated as an interval (firestore-time.ts).
 *
 * A lost reply: the write may have been executed or not, now or later, and the core asks again with the same hold. The
 * client retries by itself, too: a retry that fails on its own first write finds exactly the record that it wrote, and
 * counts as written. A write that is late fails, because the document has changed by then, or leaves an expired hold.
 */
import { InvalidArgumentError, type Store } from '../../protocol/index.js';
import { checkOptionNames } from '../../protocol/option-names.js';
import { messageOf } from '../clients/errors.js';
import { findingsOf, good, note, warning } from '../clients/findings.js';
import { checkLayout } from '../clients/layout.js';
import { listed } from '../clients/listed.js';
import type { CentralLayout } from '../compare-and-swap/central-layout.js';
import { CompareAndSwap } from '../compare-and-swap/compare-and-swap.js';
import { estimatedTraits } from '../compare-and-swap/estimated-traits.js';
import { type Fields, listedState, recordRegister } from '../compare-and-swap/records.js';
import { answered } from './answered.js';
import type { FirestoreClient } from './client.js';
import { documentTable, fieldsIn, nativeDocuments } from './documents.js';
import { rethrow } from './errors.js';
import { timeOf } from './firestore-time.js';
import { Inboxes } from './inboxes.js';
import type { FirestoreLayout } from './layouts.js';

/** Options of `firestoreStore`. */
export interface FirestoreStoreOptions {
  /** The collection of the locks, or the path of a subcollection. Default `holdfast`, and `locks` with the layout. */
  readonly collection?: string;
  /**
   * Keep a queue of waiters in the document, and wake them by snapshot listeners. Default true. Without it waiters poll,
   * in no order: fewer writes where many processes wait for one key.
   */
  readonly queue?: boolean;
  /**
   * Shares locks with other software, in its documents: a layout of `holdfast/firestore/layouts`. There is no queue then.
   * Default none.
   */
  readonly layout?: FirestoreLayout;
}

/** Usually the shortest round trip of late. */
const CLOCK_ERROR_MS = 100;
/** Sorts after every character of an id. */
const LAST = '\u{10ffff}';

/** The client is used as it is and never terminated. Nothing has to be created: Firestore makes collections on first use. */
export function firestoreStore(client: FirestoreClient, options: FirestoreStoreOptions = {}): Store {
  const { collection, queue, central } = checked(client, options);
  const layout = central?.records ?? nativeDocuments;
  const ttlField = central ? 'ttl' : 'deleteAfter';
  const locks = client.collection(collection);
  const beside = client.collection(`${collection}-inboxes`);
  const time = timeOf(client, beside);
  const inboxes = new Inboxes(beside);
  const wake = inboxes.send.bind(inboxes);
  const checkOpen = (): void => swap.checkOpen();
  const table = documentTable({ locks, time, layout, ttlField, wake, checkOpen });
  const swap = new CompareAndSwap(recordRegister(table, layout), time, { name: 'Firestore', queue });

  /** One billed read per document with this prefix, in use or not. */
  async function documentsByKey(prefix: string): Promise<ReadonlyMap<string, Fields>> {
    const all = locks.orderBy('__name__');
    const start = layout.startOf(prefix);
    const { docs } = await (prefix === '' ? all : all.startAt(start).endAt(start + LAST)).get();
    const keyed = docs.map((document) => [layout.keyIn(document.id), fieldsIn(document) ?? {}] as const);
    return new Map(keyed.filter((one): one is [string, Fields] => one[0] !== null));
  }

  return {
    name: 'firestore',
    traits: estimatedTraits(CLOCK_ERROR_MS, { push: queue, queue, metered: true }),
    apply: (commands) => swap.apply(commands),
    ...(central && { instances: central.instancesOn({ table, time, swap }) }),
    ...(queue && {
      async listen(inbox, onWake, onListening = () => undefined) {
        swap.checkOpen();
        return await inboxes.listen(inbox, onWake, onListening);
      },
    }),
    read: (key) => swap.read(key),
    async *list(query) {
      swap.checkOpen();
      if (query.limit !== undefined && query.limit <= 0) return;
      const found = await answered(documentsByKey(query.prefix)).catch(rethrow);
      const { earliest } = await swap.now();
      yield* listed(found, query, earliest, (key, fields) => listedState(layout, key, fields));
    },
    async probe() {
      swap.checkOpen();
      await time.sample();
      const { earliest, latest } = await swap.now();
      const { FIRESTORE_EMULATOR_HOST: emulator } = process.env;
      const findings = findingsOf(
        good(`Firestore's clock decides, known to ${latest - earliest} ms now: no client's clock matters.`),
        emulator !== undefined && warning('This is an emulator, made for tests: its locks are lost with it.'),
        note(
          `Unused documents stay until a TTL policy on the field "${ttlField}" of "${collection}" and on "deleteAfter" of "${collection}-inboxes" ` +
            'deletes them. Whether there is one cannot be seen from here.',
        ),
        note(
          'Firestore takes about one write per second and document for long: a key with many waiters is slow.',
        ),
        inboxes.error !== undefined &&
          warning(`A wake-up failed: ${messageOf(inboxes.error)} Waiters poll, too.`),
      );
      const server = emulator ? `Firestore emulator at ${emulator}` : 'Firestore';
      return { server, now: Math.round((earliest + latest) / 2), findings };
    },
    async close() {
      swap.close();
      inboxes.close();
    },
  };
}

/** An odd number of segments. */
const COLLECTION = /^[^/]+(?:\/[^/]+\/[^/]+)*$/;
const RESERVED = /^(?:\.{1,2}|__.*__)$/;

function checked(client: FirestoreClient, options: FirestoreStoreOptions) {
  if (typeof client?.collection !== 'function') {
    throw new InvalidArgumentError(
      'This is not a client of Firestore: pass new Firestore() of @google-cloud/firestore, or getFirestore() of firebase-admin.',
    );
  }
  checkOptionNames(options, ['collection', 'queue', 'layout']);
  const central = checkLayout<CentralLayout<'firestore'>>(options.layout, 'firestore');
  const { collection = central ? 'locks' : 'holdfast', queue = !central } = options;
  if (!COLLECTION.test(collection) || collection.split('/').some((segment) => RESERVED.test(segment))) {
    throw new InvalidArgumentError(
      'The collection has to be a name such as "locks", or the path of a subcollection such as "apps/billing/locks".',
    );
  }
  if (typeof queue !== 'boolean') throw new InvalidArgumentError('queue has to be true or false.');
  if (central && queue) throw new InvalidArgumentError(`The layout ${central.name} has no queue.`);
  return { collection, queue, central };
}
