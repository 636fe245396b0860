/**
 * A store on a table of an SQL database (sql-table.ts), through the compare-and-swap adapter.
 *
 * Atomic: a row is replaced by one statement, on the condition that it is still the one decided on.
 * Clock: the database's, estimated from the time in every reply.
 * Clean-up: from time to time a command is followed by the deletion of some expendable rows. Nobody waits for it.
 * There are no wake-ups: waiters poll.
 */
import { systemClock } from '../../clock.js';
import { type Guarantees, type Snapshot, type Store, snapshotOf } from '../../protocol/index.js';
import { messageOf } from '../clients/errors.js';
import { note } from '../clients/findings.js';
import { firstOf } from '../clients/listed.js';
import { CompareAndSwap } from '../compare-and-swap/compare-and-swap.js';
import { estimatedTraits } from '../compare-and-swap/estimated-traits.js';
import type { Register } from '../compare-and-swap/register.js';
import { TimeEstimate, USUAL_ERROR_MS } from '../compare-and-swap/time-estimate.js';
import { CleanUp } from './clean-up.js';
import type { KeyedState, SqlTable, Timed } from './sql-table.js';

export interface SqlStoreOptions {
  /** The store's name. */
  readonly name: string;
  /** The database's name, for messages. */
  readonly title: string;
  /** Whether waiters queue in the row. */
  readonly queue: boolean;
}

/** The database's times are whole microseconds. */
const TICK_MS = 0.001;
const PAGE_ROWS = 250;

export function sqlStore<V>(table: SqlTable<V>, { name, title, queue }: SqlStoreOptions): Store {
  const time = Object.assign(new TimeEstimate(), {
    async sample() {
      await timed(() => table.time());
    },
  });

  async function timed<T>(statement: () => Promise<Timed<T>>): Promise<T> {
    const sentMs = systemClock.monotonicMs();
    const { value, atMs } = await statement();
    if (atMs === null) return value;
    if (!Number.isFinite(atMs)) throw new Error(`${title} answered without its time.`);
    time.note(sentMs, systemClock.monotonicMs(), atMs, atMs + TICK_MS);
    return value;
  }

  const page = (prefix: string, after: string | null): Promise<readonly KeyedState[]> =>
    timed(() => table.page(prefix, after, PAGE_ROWS));

  const { take, check } = table;
  const register: Register<V> = {
    absent: table.absent,
    read: (key) => timed(() => table.read(key)),
    write: (key, next, seen, now) => timed(() => table.replace(key, next, seen, now)),
    ...(take && { take: (claim, next, now) => timed(() => take.call(table, claim, next, now)) }),
    ...(check && { check: check.bind(table) }),
  };
  const swap = new CompareAndSwap(register, time, { name: title, queue });
  const cleanUp = new CleanUp((rows) => table.cleanUp(rows));
  const instances = table.instancesOn?.({ time, swap, timed });

  async function* snapshots(prefix: string, after: string | null): AsyncGenerator<Snapshot | null> {
    for (let from: string | null | undefined = after; from !== undefined; ) {
      const rows: readonly KeyedState[] = await page(prefix, from);
      const { earliest } = await swap.now();
      for (const { key, state } of rows) yield snapshotOf(key, state(), earliest);
      from = rows.length < PAGE_ROWS ? undefined : rows.at(-1)?.key;
    }
  }

  return {
    name,
    traits: estimatedTraits(USUAL_ERROR_MS, { push: false, queue }),
    apply(commands) {
      const replies = swap.apply(commands);
      cleanUp.step(commands.length);
      return replies;
    },
    ...(instances && { instances }),
    read: (key) => swap.read(key),
    async *list({ prefix, after = null, limit }) {
      swap.checkOpen();
      yield* firstOf(snapshots(prefix, after), limit);
    },
    async probe(): Promise<Guarantees> {
      swap.checkOpen();
      await time.sample();
      const { server, findings } = await table.probe();
      const { latest } = await swap.now();
      const failed =
        cleanUp.error === null ? [] : [note(`The last clean-up failed: ${messageOf(cleanUp.error)}`)];
      return { server, now: latest, findings: [...findings, ...failed] };
    },
    async close() {
      cleanUp.close();
      swap.close();
    },
  };
}
