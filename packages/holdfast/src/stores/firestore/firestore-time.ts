/**
 * Firestore's time. A write that changes a document is answered with its commit time, which lies between sending and
 * receiving. A read is answered with the time of the data that it saw, which may be older: a lower limit only.
 */
import { systemClock } from '../../clock.js';
import type { StoreTime } from '../compare-and-swap/register.js';
import { TimeEstimate } from '../compare-and-swap/time-estimate.js';
import { answered } from './answered.js';
import type { FirestoreClient, FirestoreCollection, FirestoreTimestamp, FirestoreWrite } from './client.js';
import { rethrow } from './errors.js';

/** Documents that are written to learn the time. Many processes may ask at once, and a document takes few writes per second. */
const CLOCKS = 16;

const times = new WeakMap<FirestoreClient, FirestoreTime>();

/** All stores of a client share it. `clocks`: the collection of those documents. */
export function timeOf(client: FirestoreClient, clocks: FirestoreCollection): FirestoreTime {
  const time = times.get(client) ?? new FirestoreTime(clocks);
  times.set(client, time);
  return time;
}

export class FirestoreTime extends TimeEstimate implements StoreTime {
  readonly #clocks: FirestoreCollection;

  constructor(clocks: FirestoreCollection) {
    super();
    this.#clocks = clocks;
  }

  async sample(): Promise<void> {
    const id = `clock-${Math.floor(systemClock.random() * CLOCKS)}`;
    // Another value each time: a write that changes nothing is answered with the time of the one before.
    const fields = { written: systemClock.randomId() };
    await this.timed(() => this.#clocks.doc(id).set(fields)).catch(rethrow);
  }

  /** Notes the time of a write. */
  async timed(write: () => Promise<FirestoreWrite>): Promise<FirestoreTimestamp> {
    const sentMs = systemClock.monotonicMs();
    const { writeTime } = await answered(write());
    const at = writeTime.toMillis();
    this.note(sentMs, systemClock.monotonicMs(), at, at + 1);
    return writeTime;
  }
}
