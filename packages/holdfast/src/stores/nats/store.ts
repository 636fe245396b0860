/**
 * Locks in a KV bucket of NATS JetStream.
 *
 * Layout: one key of the bucket a lock, that is one message of the stream `KV_<bucket>`; its name in keys.ts, its bytes
 * in record.ts, or in layouts/ where other software wrote them first.
 *
 * Atomic: a decision is made here, by `decide`, and stored only if the key's last message is still the one that was
 * decided on (`Nats-Expected-Last-Subject-Sequence`); the server checks and stores in one step, on a cluster when a
 * majority has it (old servers need help with that: versions.ts). A key that was never used, or that this process used last, costs one call; else up to three.
 *
 * Clock: the stamps that the server puts on messages. This process's idea of that time is an interval; a hold's end is
 * counted from its stamp, and nobody takes over without having asked for the time a moment before.
 *
 * A reply is lost with the connection, with a leader, or when there is no majority: then the message may be stored or
 * not, now or later, and the core asks again with the same hold. A message that lay in some buffer for long is harmless:
 * something else is there by then, or its tokens are read as later ones (record.ts).
 *
 * Hints go over core NATS and are not stored. The connection is the caller's and reconnects by itself; nothing here
 * waits or retries, but for the limits on how long an answer is awaited (writes.ts).
 */
import {
  type Command,
  type ListQuery,
  type Reply,
  type Snapshot,
  type Store,
  type Traits,
  UnsupportedError,
} from '../../protocol/index.js';
import { CompareAndSwap } from '../compare-and-swap/compare-and-swap.js';
import { Bucket, type BucketParts, subjectOf } from './bucket.js';
import { Cleanup } from './cleanup.js';
import { askApi, type NatsConnection } from './connection.js';
import { Hints } from './hints.js';
import { NoLockError } from './layout.js';
import { keysListed } from './listing.js';
import { probe } from './probe.js';
import { NatsRegister } from './register.js';
import { NatsTime } from './store-time.js';
import { comparesTooEarly } from './versions.js';
import { Writes } from './writes.js';

/** What the two ends of an estimate are apart, as a rule. */
const CLOCK_ERROR_MS = 15;
/** How many records a list reads at once. */
const PAGE = 32;

export function storeOn(connection: NatsConnection, parts: BucketParts): Store {
  const { bucket: bucketName, layout } = parts;
  const forget = (): void => {
    adapter.forget();
    cleanup.forget();
  };
  const bucket = new Bucket(connection, parts, forget);
  const time = new NatsTime(connection, bucketName, bucket);
  // A server that comes back may have lost what it stored last, or all of it.
  const hints = new Hints(connection, bucketName, () => {
    bucket.lostSight();
    forget();
  });
  const cleanup = new Cleanup({
    enabled: layout.ownsBucket,
    // Such servers would let an update of a deleted record overwrite a new one.
    config: () =>
      comparesTooEarly(connection.info, bucket.config?.num_replicas ?? 1) || !bucket.isSame()
        ? null
        : bucket.config,
    ask: (call, question) => askApi(connection, `STREAM.${call}.${bucket.stream}`, question),
    subjectOf: (kvKey) => subjectOf(bucketName, kvKey),
  });
  const writes = new Writes(connection);
  const register = new NatsRegister({
    connection,
    bucketName,
    bucket,
    layout,
    time,
    cleanup,
    writes,
    wake: (key, wakes) => hints.wake(key, wakes),
  });
  const adapter = new CompareAndSwap(register, time, { name: 'NATS', queue: layout.queue });
  const traits: Traits = {
    clock: 'estimate',
    clockErrorMs: CLOCK_ERROR_MS,
    push: layout.queue,
    queue: layout.queue,
    shared: 'network',
    durable: true,
    vigilMs: null,
  };

  let closed = false;

  function checkUsable(): void {
    if (closed) throw new UnsupportedError('This NATS store is closed.');
  }

  /** Looked at, and fit for locks. */
  async function ready(): Promise<void> {
    checkUsable();
    await bucket.ready();
    hints.watch();
  }

  function apply(commands: readonly Command[]): readonly Promise<Reply>[] {
    if (bucket.config !== null) {
      const earliest = time.reading()?.earliest;
      if (earliest !== undefined) cleanup.step(earliest);
      return adapter.apply(commands);
    }
    if (commands.length === 0) return [];
    const replies = ready().then(() => adapter.apply(commands));
    return commands.map(async (_, index) => await ((await replies)[index] as Promise<Reply>));
  }

  async function viewOf(key: string): Promise<Snapshot | null> {
    try {
      return await adapter.read(key);
    } catch (error) {
      // What is no lock is nobody's business here; a command on it would say so.
      if (error instanceof NoLockError) return null;
      throw error;
    }
  }

  return {
    name: 'nats',
    traits,
    apply,
    async listen(inbox, wake, hears = () => undefined) {
      checkUsable();
      return await hints.listen(inbox, wake, hears);
    },
    async read(key) {
      await ready();
      return await adapter.read(key);
    },
    async *list(query: ListQuery) {
      await ready();
      let left = query.limit ?? Number.POSITIVE_INFINITY;
      if (left <= 0) return;
      const keys = await keysListed(connection, bucketName, bucket, layout, query);
      for (let from = 0; from < keys.length; from += PAGE) {
        for (const view of await Promise.all(keys.slice(from, from + PAGE).map(viewOf))) {
          if (!view) continue;
          yield view;
          left -= 1;
          if (left <= 0) return;
        }
      }
    },
    async probe() {
      await ready();
      await time.sample();
      const troubles = { hints: hints.trouble, cleanup: cleanup.trouble, writes: writes.trouble };
      const [info, now] = await Promise.all([bucket.info(), adapter.now()]);
      return await probe({ connection, bucketName, info, time: now, layout, troubles });
    },
    async close() {
      if (closed) return;
      closed = true;
      adapter.close();
      hints.close();
      cleanup.forget();
      writes.close();
    },
  };
}
