/**
 * Locks in an SQLite file, shared by all processes of one machine.
 *
 * Layout: `holdfast_records` has one row per key: the state as JSON, the time of its last decision, and when it may be
 * deleted; every writing transaction deletes a few expired ones. `holdfast_clocks` has the time offset of each boot,
 * `holdfast_processes` the process ids of holders and waiters. Wake-ups to other processes go through files in a folder
 * beside the database.
 *
 * Atomic: a batch is one IMMEDIATE transaction, in which `decide` runs without other writers. Without a change nothing is
 * written, so that a waiter that polls costs no disk.
 *
 * Clock: the machine's, see machine-clock.ts and store-time.ts. It is read inside the transaction, so times rise in the
 * order of decision over all processes. Holders and waiters whose process is provably gone count as expired at once.
 *
 * A lost reply: it is lost only together with its process. Commits of that process stay: the holder is then provably gone,
 * or its ttl ends it. A killed transaction changes nothing. A database that stays busy rejects the batch, undecided.
 *
 * The store never waits, except for SQLite's own busy timeout.
 */
import { steadyMs } from '../../clock.js';
import {
  type Command,
  InvalidArgumentError,
  NotExecutedError,
  type Reply,
  type Snapshot,
  type State,
  type Store,
  snapshotOf,
  UnsupportedError,
} from '../../protocol/index.js';
import { isError } from '../../protocol/is-error.js';
import { firstOf } from '../clients/listed.js';
import { batches } from './batch.js';
import {
  immediately,
  isClosed,
  resultCode,
  SQLITE_BUSY,
  SQLITE_FULL,
  type SqliteDatabase,
  withPlainRows,
} from './database.js';
import { type Findings, type Liveness, liveness } from './liveness.js';
import { explained, prepareDatabase, unusable } from './open.js';
import { openedFiles } from './opened-files.js';
import { probe } from './probe.js';
import { type ProcessTable, systemProcessTable } from './process-table.js';
import { records } from './records.js';
import { storeTime } from './store-time.js';
import { inboxes, wakeFiles } from './wake-files.js';

/** The SQLite store. Other processes that work under its locks can be registered. */
export interface SqliteStore extends Store {
  /** Registers a process that works under this process's locks: both must be gone before a holder counts as gone. */
  recordProcess(pid: number): Promise<void>;
  /** Unregisters it, once the process has ended. */
  forgetProcess(pid: number): Promise<void>;
}

export interface StoreParts {
  /** Whether provably gone processes lose their locks before the ttl ends. */
  readonly liveness: boolean;
  /** Called once the store is closed. */
  readonly closed: () => void;
  /** Replaced in tests. */
  readonly table?: ProcessTable;
  readonly now?: () => number;
}

/** How often the first waiters ask, so that a death is noticed within 250 ms. */
const LIVENESS_POLL_MS = 200;

export function storeOn(given: SqliteDatabase, parts: StoreParts): SqliteStore {
  const database = withPlainRows(given);
  const { file } = prepareDatabase(database);
  const table = parts.table ?? explained(file, systemProcessTable);
  // A database in memory has one process, so the clock of that process is enough.
  const now =
    parts.now ??
    (file === null ? () => Math.floor(steadyMs()) : explained(file, () => storeTime(database, table.clock)));
  const kept = explained(file, () => records(database));
  const files = file === null ? null : wakeFiles(file, table);
  const inbox = inboxes(files);
  const canProve = file !== null && parts.liveness && table.boot !== null && table.namespace !== null;
  const life = canProve ? liveness(database, table, kept) : null;
  const decideBatch = batches({ database, records: kept, liveness: life, now });
  const missing = file === null ? () => null : openedFiles(file);
  let closed = false;

  function checkOpen(): void {
    if (closed) throw new UnsupportedError('This SQLite store is closed.');
    const gone = missing();
    if (gone === null) return;
    const what = gone === file ? 'it' : file;
    throw new UnsupportedError(`${gone} was removed or replaced while in use. Open ${what} again.`);
  }

  function apply(commands: readonly Command[]): readonly Promise<Reply>[] {
    try {
      checkOpen();
      const { outcomes, wakeUps } = decideBatch(commands);
      inbox.deliver(wakeUps);
      return outcomes.map((outcome) =>
        'reply' in outcome ? Promise.resolve(outcome.reply) : Promise.reject(outcome.error),
      );
    } catch (error) {
      return commands.map(() => Promise.reject(explainedCommand(error, file)));
    }
  }

  /** The state that a claim would find now. */
  function view(state: State | null, at: number, findings: Findings): State | null {
    return state && life ? life.expireGone(state, at, findings) : state;
  }

  function explaining<T>(work: () => T): T {
    checkOpen();
    try {
      return work();
    } catch (error) {
      throw explainedCommand(error, file);
    }
  }

  async function* snapshots(prefix: string, after: string): AsyncGenerator<Snapshot | null> {
    const findings: Findings = new Map();
    for (let last = after; ; ) {
      const page = explaining(() => kept.page(prefix, last));
      if (page.length === 0) return;
      const at = now();
      for (const { key, state } of page) {
        if (!key.startsWith(prefix)) return;
        yield snapshotOf(key, view(state(), at, findings), at);
        last = key;
      }
    }
  }

  async function changeFor(pid: number, work: (known: Liveness) => void): Promise<void> {
    if (!Number.isSafeInteger(pid) || pid <= 0) throw new InvalidArgumentError(`${pid} is not a process id.`);
    return change(work);
  }

  async function change(work: (known: Liveness) => void): Promise<void> {
    explaining(() => life && immediately(database, () => work(life)));
  }

  return {
    name: 'sqlite',
    traits: {
      clock: 'machine',
      clockErrorMs: 0,
      push: true,
      queue: true,
      shared: file === null ? 'process' : 'machine',
      durable: file !== null,
      livenessPollMs: canProve ? LIVENESS_POLL_MS : null,
    },
    apply,
    async listen(name, wake) {
      checkOpen();
      const stop = inbox.add(name, wake);
      return async () => stop();
    },
    async read(key) {
      const at = now();
      return explaining(() => snapshotOf(key, view(kept.load(key), at, new Map()), at));
    },
    list: ({ prefix, after = '', limit }) => firstOf(snapshots(prefix, after), limit),
    async probe() {
      checkOpen();
      return probe({ database, file, files, now, canProve, wallClock: table.clock === null });
    },
    recordProcess: (pid) => changeFor(pid, (known) => known.record(pid)),
    forgetProcess: (pid) => changeFor(pid, (known) => known.forget(pid)),
    handOff: (hold) => change((known) => known.handOff(hold)),
    async close() {
      if (closed) return;
      closed = true;
      inbox.close();
      try {
        if (life) immediately(database, () => life.leave());
      } catch (error) {
        // Later processes delete the registrations.
        if (resultCode(error) !== SQLITE_BUSY && !isClosed(error)) throw error;
      } finally {
        parts.closed();
      }
    },
  };
}

/** A failed transaction is undone, unless it failed during the commit: then its outcome is unknown. */
function explainedCommand(cause: unknown, file: string | null): unknown {
  const where = file ?? 'The database';
  if (isClosed(cause)) {
    const text = `${where}: the DatabaseSync of this store was closed. Close the locks first, and the database after them.`;
    return new UnsupportedError(text, { cause });
  }
  if (!isError(cause) || resultCode(cause) === null) return cause;
  switch (resultCode(cause)) {
    case SQLITE_BUSY:
      return new NotExecutedError(
        `${where} is busy: another process has been writing to it for too long. Is one stopped in the middle?`,
        'at-once',
        cause,
      );
    case SQLITE_FULL:
      return new NotExecutedError(`${where}: the disk is full. Make room on it.`, 'while-waiting', cause);
    default:
      return unusable(where, cause) ?? new Error(`${where}: ${cause.message}`, { cause });
  }
}
