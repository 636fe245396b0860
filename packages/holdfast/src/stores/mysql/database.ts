/**
 * Statements on a pool or a connection of mysql2 or mariadb, typed by the few methods that are used.
 *
 * All of them are prepared, so that values are sent as they are, whatever `sql_mode` and character set a session has.
 * Every reply tells whether the session has autocommit. Where it is off, the store commits what it wrote, and reads in
 * transactions of its own. A statement that hangs is given up after `STATEMENT_MS_MAX`, and its connection destroyed.
 */
import { systemClock } from '../../clock.js';
import { ignore } from '../../protocol/ignore.js';
import { InvalidArgumentError, NotExecutedError, UnsupportedError } from '../../protocol/index.js';
import { messageOf, notExecuted } from '../clients/errors.js';
import { STATEMENT_MS_MAX } from '../clients/opened-client.js';

type Value = string | Buffer;

/** A connection of mysql2 (its promise API) or mariadb, with autocommit, that is not used for transactions. */
export interface MysqlConnection {
  execute(options: { readonly sql: string }, values: Value[]): Promise<unknown>;
}

/** A pool of mysql2 (its promise API) or mariadb. */
export interface MysqlPool {
  getConnection(): Promise<MysqlConnection>;
}

/** A pool or connection of mysql2 with callbacks. */
export interface MysqlCallbackClient {
  promise(): MysqlPool | MysqlConnection;
}

export type MysqlClient = MysqlPool | MysqlConnection | MysqlCallbackClient;

export type Row = Readonly<Record<string, unknown>>;

/** The members of a connection that one of the drivers has, and of a reply to a write. */
interface Inside extends MysqlConnection {
  release?(): unknown;
  destroy?(): unknown;
  readonly info?: { readonly status?: unknown };
}

interface Header {
  readonly insertId?: unknown;
  readonly affectedRows?: unknown;
  readonly serverStatus?: unknown;
}

export interface Change {
  /** Set by LAST_INSERT_ID(…) in the statement; 0 where it did not run. */
  readonly insertId: number;
  readonly rows: number;
}

const IN_TRANSACTION = 1;
/** Options of the user's pool that change the form of rows, as these statements expect them. */
const PLAIN_ROWS = {
  rowsAsArray: false,
  nestTables: false,
  namedPlaceholders: false,
  typeCast: (_field: unknown, next: () => unknown): unknown => next(),
};

export class Database {
  readonly #pool: MysqlPool | null;
  readonly #connection: MysqlConnection | null;
  /** Whether sessions without autocommit were seen. */
  #commits = false;

  constructor(given: MysqlClient) {
    const client = has(given, 'promise') ? (given as MysqlCallbackClient).promise() : given;
    this.#pool = has(client, 'getConnection') ? (client as MysqlPool) : null;
    this.#connection = has(client, 'execute') ? (client as MysqlConnection) : null;
    if (this.#pool || this.#connection) return;
    throw new InvalidArgumentError(
      'mysqlStore needs a pool or a connection of mysql2 or mariadb as its first argument.',
    );
  }

  /** The rows of a query, which has the column `autocommit` and at least one row. Committed rows of this moment. */
  async rows(sql: string, values: Value[]): Promise<readonly Row[]> {
    const commits = this.#commits;
    const rows = await this.#use(async (connection) => {
      // An open transaction would show the rows of its beginning.
      if (commits) await connection.execute({ sql: 'COMMIT' }, []);
      const found = rowsIn(await connection.execute({ ...PLAIN_ROWS, sql }, values));
      if (commits) await connection.execute({ sql: 'COMMIT' }, []);
      return found;
    });
    if (commits || Number(rows[0]?.autocommit) !== 0) return rows;
    this.#commitsFromNowOn();
    return await this.rows(sql, values);
  }

  /** Runs a write, and commits it. The last bit of a number set by LAST_INSERT_ID has to be `@@autocommit`. */
  async change(sql: string, values: Value[]): Promise<Change> {
    return await this.#use(async (connection) => {
      const header = headerIn(await connection.execute({ sql }, values));
      const change = { insertId: Number(header.insertId ?? 0), rows: Number(header.affectedRows ?? 0) };
      const status = Number(header.serverStatus ?? connection.info?.status ?? 0);
      if (change.insertId > 0 && change.insertId % 2 === 0) this.#commitsFromNowOn();
      const isOpen = (status & IN_TRANSACTION) !== 0;
      if (isOpen && !this.#pool) throw notAlone('is inside a transaction');
      if (isOpen || this.#commits) await connection.execute({ sql: 'COMMIT' }, []);
      return change;
    });
  }

  #commitsFromNowOn(): void {
    if (!this.#pool) throw notAlone('has autocommit off');
    this.#commits = true;
  }

  async #use<T>(run: (connection: Inside) => Promise<T>): Promise<T> {
    const connection: Inside = this.#pool ? await acquire(this.#pool) : (this.#connection as Inside);
    let isDone = false;
    try {
      return await within(run(connection), () => {
        isDone = true;
        if (this.#pool) connection.destroy?.();
        return new Error('MySQL has taken the statement, and is silent');
      });
    } finally {
      if (this.#pool && !isDone) release(connection);
    }
  }
}

/** Rejects with a `NotExecutedError`: nothing was sent yet. */
async function acquire(pool: MysqlPool): Promise<Inside> {
  const acquiring: Promise<Inside> | undefined = pool.getConnection();
  if (typeof acquiring?.then !== 'function') {
    throw new InvalidArgumentError(
      'This pool has callbacks. Take one of the promise API: import mariadb instead of mariadb/callback.',
    );
  }
  try {
    return await within(acquiring, () => {
      // It may come later, and nobody waits for it then.
      acquiring.then(release, ignore);
      return new NotExecutedError(
        `the pool had no free connection within ${STATEMENT_MS_MAX} ms: make it larger`,
        'while-waiting',
      );
    });
  } catch (error) {
    throw notExecuted(error) ?? new NotExecutedError(messageOf(error), 'while-waiting', error);
  }
}

function release(connection: Inside): void {
  // mariadb returns a promise. A connection that cannot be released leaves the pool by itself.
  Promise.resolve(connection.release?.()).catch(ignore);
}

async function within<T>(work: Promise<T>, onTimeout: () => Error): Promise<T> {
  return await new Promise<T>((resolve, reject) => {
    const timer = systemClock.timer(STATEMENT_MS_MAX, () => reject(onTimeout()));
    work.finally(() => timer.cancel()).then(resolve, reject);
  });
}

function notAlone(how: string): UnsupportedError {
  return new UnsupportedError(
    `This connection ${how}, and would undo a lock with it: give mysqlStore a pool, or a connection of its own.`,
  );
}

/** mysql2 returns a pair of rows and columns, mariadb the rows. */
function rowsIn(result: unknown): readonly Row[] {
  if (!Array.isArray(result)) return [];
  return Array.isArray(result[0]) ? (result[0] as readonly Row[]) : (result as readonly Row[]);
}

function headerIn(result: unknown): Header {
  return (Array.isArray(result) ? result[0] : result) as Header;
}

function has(client: unknown, method: string): boolean {
  const members = client as Readonly<Record<string, unknown>> | null | undefined;
  return typeof members?.[method] === 'function';
}
