/**
 * Updates of several keys in one statement, where several come at one moment or while `RUNNING_MAX` statements run. An
 * update that comes alone is sent alone, at once.
 *
 * 1. Updates wait for the end of this moment, or until fewer statements run; for `WAIT_MS` at most.
 * 2. A group is one statement. One row with another version than expected undoes it. Then each update is sent alone.
 * 3. Rows that are gone are not counted in the reply. Then the versions are read: a row with its new version was written,
 *    and the others were not, if the count says so. Else one was replaced meanwhile, and their outcome is unknown.
 * 4. A key that lost a race, and the keys of a statement that failed, are sent alone for `ALONE_MS`: a row that
 *    somebody keeps locked holds up others once, for the second that its lock is waited for, and no more.
 *
 * No group has a key twice, or a key whose earlier update is not answered yet.
 */
import { systemClock } from '../../clock.js';
import { NotExecutedError } from '../../protocol/index.js';
import { messageOf } from '../clients/errors.js';
import { RecentMap } from '../compare-and-swap/recent-map.js';
import type { Timed } from '../sql/sql-table.js';
import type { NewRow } from './row.js';

/** A row to be written where it still has the version `seen`. */
export interface Update {
  readonly key: string;
  readonly row: NewRow;
  readonly seen: string;
}

/** The statements for them. */
export interface UpdateStatements {
  one(update: Update): Promise<Timed<boolean>>;
  /** Resolves with how many rows were written, which are all that are there. Null: one had another version, and none was. */
  several(updates: readonly Update[]): Promise<Timed<number> | null>;
  /** The versions of these keys now. */
  versions(updates: readonly Update[]): Promise<ReadonlyMap<string, string>>;
  /** Whether this server gives up soon on a row that is locked, so that one key does not hold up others. */
  canGroup(): boolean;
}

interface Waiting extends Update {
  resolve(written: Timed<boolean>): void;
  reject(error: unknown): void;
}

const RUNNING_MAX = 2;
const GROUP_MAX = 32;
const WAIT_MS = 50;
const ALONE_MS = 60_000;
const ALONE_KEYS_MAX = 1_000;
/** A group of the greatest states fits into a packet of 1 MB, which some servers have as their limit. */
const STATE_LENGTH_MAX = 8_000;
const SETTLED = Promise.resolve();
const REPLACED = 'rows of its statement were gone, and others were replaced meanwhile';
const NOT_WRITTEN: Timed<boolean> = { value: false, atMs: null };

export class UpdateGroups {
  readonly #statements: UpdateStatements;
  #waiting: Waiting[] = [];
  /** Keys that wait or are being written. */
  readonly #pending = new Set<string>();
  readonly #aloneUntilMs = new RecentMap<string, number>(ALONE_KEYS_MAX);
  #running = 0;
  #hasTimer = false;
  #isScheduled = false;

  constructor(statements: UpdateStatements) {
    this.#statements = statements;
  }

  /** Resolves with whether the row was written. */
  update(update: Update): Promise<Timed<boolean>> {
    if (!this.#isGroupable(update)) return this.#statements.one(update);
    const { key, row, seen } = update;
    this.#pending.add(key);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ key, row, seen, resolve, reject });
      if (this.#isScheduled) return;
      this.#isScheduled = true;
      void SETTLED.then(() => {
        this.#isScheduled = false;
        this.#start();
      });
    });
  }

  #isGroupable({ key, row }: Update): boolean {
    return (
      this.#statements.canGroup() &&
      !this.#pending.has(key) &&
      row.state.length <= STATE_LENGTH_MAX &&
      (this.#aloneUntilMs.get(key) ?? 0) <= systemClock.monotonicMs()
    );
  }

  #start(): void {
    while (this.#waiting.length > 0 && this.#running < RUNNING_MAX) this.#startNext();
    if (this.#waiting.length === 0 || this.#hasTimer) return;
    // Statements that hang do not keep others waiting.
    this.#hasTimer = true;
    const [longest] = this.#waiting;
    const timer = systemClock.timer(WAIT_MS, () => {
      this.#hasTimer = false;
      if (longest && this.#waiting[0] === longest) this.#startNext();
      this.#start();
    });
    timer.keepAlive(false);
  }

  #startNext(): void {
    const group = this.#waiting.splice(0, GROUP_MAX);
    this.#running += 1;
    void this.#write(group).finally(() => {
      this.#running -= 1;
      this.#start();
    });
  }

  /** Settles each of them; never rejects. */
  async #write(group: readonly Waiting[]): Promise<void> {
    const [first, second] = group;
    if (first && !second) return await this.#writeAlone(first);
    try {
      const written = await this.#statements.several(group);
      if (written) await this.#settle(group, written);
      else await Promise.all(group.map((one) => this.#writeAlone(one)));
    } catch (error) {
      const isUndone = error instanceof NotExecutedError && error.retry === 'at-once';
      for (const one of group) {
        this.#keepAlone(one);
        // Not awaited: while a row is locked, further groups are sent.
        if (isUndone) void this.#writeAlone(one);
        else this.#end(one).reject(error);
      }
    }
  }

  async #writeAlone(one: Waiting): Promise<void> {
    try {
      const written = await this.#statements.one(one);
      if (!written.value) this.#keepAlone(one);
      this.#end(one).resolve(written);
    } catch (error) {
      this.#end(one).reject(error);
    }
  }

  async #settle(group: readonly Waiting[], { value: count, atMs }: Timed<number>): Promise<void> {
    const isWhole = count === group.length;
    const found = isWhole || count === 0 ? null : await this.#versionsOf(group);
    const written = isWhole ? group : group.filter(({ key, row }) => found?.get(key) === row.version);
    for (const one of group) {
      if (isWhole || written.includes(one)) this.#end(one).resolve({ value: true, atMs });
      else if (written.length === count) this.#end(one).resolve(NOT_WRITTEN);
      else this.#end(one).reject(new Error(`It is unknown whether "${one.key}" was written: ${REPLACED}`));
    }
  }

  /** Rejects with an error that says nothing of the write: it was executed. */
  async #versionsOf(group: readonly Waiting[]): Promise<ReadonlyMap<string, string>> {
    try {
      return await this.#statements.versions(group);
    } catch (cause) {
      throw new Error(`It is unknown which rows were written: ${messageOf(cause)}`, { cause });
    }
  }

  #keepAlone({ key }: Update): void {
    this.#aloneUntilMs.set(key, systemClock.monotonicMs() + ALONE_MS);
  }

  #end(one: Waiting): Waiting {
    this.#pending.delete(one.key);
    return one;
  }
}
