/**
 * Statements on a pool or a connection of mysql2 or mariadb (client.ts).
 *
 * They are plain text, one round trip each, with values as `hex` writes them: no `sql_mode` and no character set of a
 * session changes them. Prepared statements would take a round trip more on each new connection.
 * Every reply tells whether the session has autocommit. Where it is off, the store commits what it wrote, and reads in
 * transactions of its own. A statement that hangs is given up, and its connection destroyed if it is of a pool (pooled.ts).
 */
import { InvalidArgumentError, NotExecutedError, UnsupportedError } from '../../protocol/index.js';
import { type MysqlClient, type MysqlConnection, type MysqlPool, promiseClient } from './client.js';
import { answered, onPooled, type Pooled } from './pooled.js';

export type Row = Readonly<Record<string, unknown>>;

export interface Change {
  /** The number set by LAST_INSERT_ID; its last bit is `@@autocommit`. 0 where it was not evaluated. */
  readonly stamp: number;
  /** Rows, as the server counts them. */
  readonly count: number;
}

/** Connections of mariadb know whether they are inside a transaction; mysql2 tells with each write. */
interface Inside extends MysqlConnection, Pooled {
  readonly info?: { readonly status?: unknown };
}

const ADVICE = 'a rollback would undo a lock. Give mysqlStore a pool, or a connection of its own.';
const HANGS =
  'a statement on this connection hangs: open another connection, or give mysqlStore a pool, which replaces those that hang';
const COMMIT = { sql: 'COMMIT' };
const IN_TRANSACTION = 1;
const typeCast = (_field: unknown, next: () => unknown): unknown => next();
/** Rows in the form that is expected here, whatever the options of the user's pool are. */
const PLAIN_ROWS = { rowsAsArray: false, nestTables: false, typeCast };

/** A literal of bytes. */
export function hex(text: string): string {
  return `X'${Buffer.from(text).toString('hex')}'`;
}

export class Database {
  readonly #pool: MysqlPool | null;
  readonly #connection: MysqlConnection | null;
  /** Whether sessions without autocommit were seen. */
  #commits = false;
  /** Whether a statement of the single connection was given up, and has not ended yet. */
  #hangs = false;

  constructor(given: MysqlClient) {
    const client = promiseClient(given);
    this.#pool = has(client, 'getConnection') ? (client as MysqlPool) : null;
    this.#connection = has(client, 'query') ? (client as MysqlConnection) : null;
    if (this.#pool || this.#connection) return;
    throw new InvalidArgumentError(
      'mysqlStore needs a pool or a connection of mysql2 or mariadb as its first argument.',
    );
  }

  /** The rows of a query, committed at this moment. The first one has the column `autocommit`. */
  async rows(sql: string): Promise<readonly Row[]> {
    const commits = this.#commits;
    const rows = await this.#use(async (connection) => {
      // An open transaction would show the rows of its beginning.
      if (commits) await connection.query(COMMIT);
      const result = await connection.query({ ...PLAIN_ROWS, sql });
      if (commits) await connection.query(COMMIT);
      // mysql2 returns a pair of rows and columns, mariadb the rows.
      return (Array.isArray((result as unknown[])[0]) ? (result as unknown[])[0] : result) as Row[];
    });
    if (commits || Number(rows[0]?.autocommit) !== 0) return rows;
    if (!this.#pool) throw new UnsupportedError(`This connection has autocommit off: ${ADVICE}`);
    this.#commits = true;
    return await this.rows(sql);
  }

  /** Whether every write is committed by itself, as far as was seen. */
  get hasAutocommit(): boolean {
    return !this.#commits;
  }

  /** Runs a write, and commits it. */
  async change(sql: string): Promise<Change> {
    return await this.#use(async (connection) => {
      const result = await connection.query({ sql });
      const { insertId, affectedRows, serverStatus } = (Array.isArray(result) ? result[0] : result) as Row;
      const stamp = Number(insertId);
      if (stamp > 0 && stamp % 2 === 0) this.#commits = true;
      const isOpen = (Number(serverStatus ?? connection.info?.status) & IN_TRANSACTION) !== 0;
      // It may be committed later, or not.
      if (isOpen && !this.#pool) throw new Error(`This connection is inside a transaction: ${ADVICE}`);
      if (isOpen || this.#commits) await connection.query(COMMIT);
      return { stamp, count: Number(affectedRows) };
    });
  }

  #use<T>(run: (connection: Inside) => Promise<T>): Promise<T> {
    if (!this.#pool) return this.#useConnection(run);
    const acquiring: Promise<Inside> = this.#pool.getConnection();
    if (has(acquiring, 'then')) return onPooled(acquiring, run);
    throw new InvalidArgumentError(
      'This pool has callbacks. Take one of the promise API: import mariadb instead of mariadb/callback.',
    );
  }

  /** A connection of the user's is not destroyed. Nothing more is sent while a statement hangs: it would come late. */
  async #useConnection<T>(run: (connection: Inside) => Promise<T>): Promise<T> {
    if (this.#hangs) throw new NotExecutedError(HANGS, 'while-waiting');
    const running = run(this.#connection as Inside);
    const onEnd = (): void => {
      this.#hangs = false;
    };
    running.then(onEnd, onEnd);
    return await answered(running, () => {
      this.#hangs = true;
    });
  }
}

function has(client: unknown, method: string): boolean {
  return typeof (client as Row | null | undefined)?.[method] === 'function';
}
