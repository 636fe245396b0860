/**
 * Locks in a KV bucket of NATS JetStream.
 *
 * Layout: one key of the bucket per lock, that is one message of the stream `KV_<bucket>`; its name in keys.ts, its bytes
 * in record.ts, or in layouts/ for the records of other software.
 *
 * Atomic: this process decides, with `decide`, and the server stores the result only if the key's last message is still
 * the one decided on (`Nats-Expected-Last-Subject-Sequence`). The server checks and stores in one step, on a cluster by
 * majority (old servers need help: versions.ts). A key that was never used, or that this process used last, costs one
 * call; else up to three.
 *
 * Clock: the timestamps that the server puts on messages. This process estimates that time as an interval. A hold's
 * expiry counts from its timestamp, and an expired holder is only replaced after a fresh reading of the time.
 *
 * A lost reply (connection, leader or majority lost): the message may be stored or not, now or later, and the core asks
 * again with the same hold. A message that was delayed for long is harmless: another message is there by then, or its
 * tokens are read as later ones (record.ts).
 *
 * Wake-ups go over core NATS and are not stored. The connection is the caller's and reconnects by itself. The only timer
 * limits how long a write waits for its answer (writes.ts).
 */
import {
  type Command,
  keysInOrder,
  type ListQuery,
  NotExecutedError,
  type Reply,
  type Snapshot,
  type Store,
  UnsupportedError,
} from '../../protocol/index.js';
import { messageOf } from '../clients/errors.js';
import { firstOf, readInOrder } from '../clients/listed.js';
import { CompareAndSwap } from '../compare-and-swap/compare-and-swap.js';
import { estimatedTraits } from '../compare-and-swap/estimated-traits.js';
import { NotALockError } from '../compare-and-swap/records.js';
import { USUAL_ERROR_MS } from '../compare-and-swap/time-estimate.js';
import { Bucket, type BucketParts } from './bucket.js';
import { Cleanup } from './cleanup.js';
import type { NatsConnection } from './connection.js';
import { NatsTime } from './nats-time.js';
import { probe } from './probe.js';
import { NatsRegister } from './register.js';
import { WakeListener } from './wake-listener.js';
import { Writes } from './writes.js';

/** Records that a list reads at once. */
const PAGE = 32;

export function storeOn(connection: NatsConnection, parts: BucketParts): Store {
  const { queue } = parts.layout;
  const forget = (): void => {
    adapter.forget();
    cleanup.forget();
  };
  const bucket = new Bucket(connection, parts, forget);
  const time = new NatsTime(bucket);
  // A server that comes back may have lost its last messages, or all of them.
  const wakes = new WakeListener(bucket, () => {
    bucket.distrust();
    forget();
  });
  const cleanup = new Cleanup(bucket);
  const writes = new Writes(connection);
  const wake = wakes.send.bind(wakes);
  const register = new NatsRegister({ bucket, time, cleanup, writes, wake });
  const adapter = new CompareAndSwap(register, time, { name: 'NATS', queue });

  /** Resolves when the bucket exists and is fit for locks. */
  async function ready(): Promise<void> {
    adapter.checkOpen();
    await bucket.ready();
    wakes.watch();
  }

  function apply(commands: readonly Command[]): readonly Promise<Reply>[] {
    if (bucket.config !== null) {
      const earliest = time.reading()?.earliest;
      if (earliest !== undefined) cleanup.step(earliest);
      return adapter.apply(commands);
    }
    if (commands.length === 0) return [];
    const replies = ready().then(() => adapter.apply(commands), unsent);
    return commands.map(async (_, index) => await ((await replies)[index] as Promise<Reply>));
  }

  async function snapshot(key: string): Promise<Snapshot | null> {
    try {
      return await adapter.read(key);
    } catch (error) {
      // A list leaves out values that are not locks; a command on one fails.
      if (error instanceof NotALockError) return null;
      throw error;
    }
  }

  async function* snapshots(query: ListQuery): AsyncGenerator<Snapshot | null> {
    yield* readInOrder(await listKeys(bucket, query), PAGE, snapshot);
  }

  return {
    name: 'nats',
    traits: estimatedTraits(USUAL_ERROR_MS, { push: queue, queue }),
    apply,
    async listen(inbox, onWake, onListening = () => undefined) {
      adapter.checkOpen();
      const onWakeUp: typeof onWake = (key, why) => {
        if (why === 'waiting') adapter.refresh(key);
        onWake(key, why);
      };
      return await wakes.listen(inbox, onWakeUp, onListening);
    },
    async read(key) {
      await ready();
      return await adapter.read(key);
    },
    async *list(query) {
      await ready();
      yield* firstOf(snapshots(query), query.limit);
    },
    async probe() {
      await ready();
      await time.sample();
      const errors = { wakeUps: wakes.error, cleanup: cleanup.error, writes: writes.error };
      const [info, now] = await Promise.all([bucket.info(), adapter.now()]);
      return await probe({ bucket, info, time: now, errors });
    },
    async close() {
      adapter.close();
      wakes.close();
      cleanup.forget();
      writes.close();
    },
  };
}

/** No command was sent before the bucket was there. */
function unsent(error: unknown): never {
  if (error instanceof UnsupportedError || error instanceof NotExecutedError) throw error;
  throw new NotExecutedError(messageOf(error), 'while-waiting', error);
}

/** The subjects of the stream as keys, read page by page and sorted. */
async function listKeys(bucket: Bucket, query: ListQuery): Promise<readonly string[]> {
  const prefix = bucket.subjectOf('');
  const keys = new Set<string>();
  for (let offset = 0; ; ) {
    const { state, total = 0 } = await bucket.call('INFO', { subjects_filter: `${prefix}>`, offset });
    const subjects = Object.keys(state?.subjects ?? {});
    for (const subject of subjects) {
      const key = bucket.layout.keyOf(subject.slice(prefix.length));
      if (key?.startsWith(query.prefix)) keys.add(key);
    }
    offset += subjects.length;
    if (subjects.length === 0 || offset >= total) return keysInOrder(keys, query);
  }
}
