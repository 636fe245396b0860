/**
 * Makes an SQL database refuse a stale token. It generates SQL; it opens no connection, runs no statement and imports no
 * driver.
 *
 * Two ways. A row with a token column of its own: one `UPDATE` that sets the token, unless a later holder has set a higher
 * one. Anything else: a guard table, raised by the first statement of the writing transaction. Raising locks the guard's
 * row until that transaction ends, so an older holder cannot write in between.
 *
 * The same token may write any number of times. A token never goes down.
 *
 * MySQL and MariaDB count rows in two ways, as the connection is set (CLIENT_FOUND_ROWS): those that matched, or those
 * that changed. With `ON DUPLICATE KEY UPDATE` a refused token and a repeated one have the same count under one setting,
 * and a refused and a first one under the other. So a raise is an `UPDATE` there, and always changes the row that it
 * matches, and `createRow` comes before it. An `UPDATE` of your own needs a connection that counts those that matched.
 * Under REPEATABLE READ a plain `SELECT` shows the past, so `read` is `FOR UPDATE` there.
 */
import { InvalidArgumentError } from '../protocol/errors.js';
import { checkOptionNames } from '../protocol/option-names.js';
import { checkRows } from './row-check.js';
import { checkToken } from './token.js';

/** `sqlite` and `mysql` (also MariaDB) write parameters as `?`, `postgres` as `$1`. */
export type SqlDialect = 'sqlite' | 'postgres' | 'mysql';

/** Options of `sqlGuard`. */
export interface SqlGuardOptions {
  /** Default `sqlite`. */
  readonly dialect?: SqlDialect;
  /** The token column of rows that have their own. Default `fence`. Make it `BIGINT NOT NULL DEFAULT 0`. */
  readonly column?: string;
  /** The guard table, with its schema if needed. Default `holdfast_fences`. */
  readonly table?: string;
}

/** A statement with the values of its placeholders, in order. */
export interface SqlStatement {
  readonly text: string;
  readonly values: readonly (string | number)[];
}

/** SQL that refuses a stale token. */
export interface SqlGuard {
  /** Creates the guard table where it does not exist. */
  readonly createTable: string;
  /** Creates the resource's row in the guard table where it does not exist. Only MySQL needs it, before `raise`. */
  createRow(resource: string): SqlStatement;
  /**
   * Raises the resource's token in the guard table, or changes nothing when a later holder has written. Must be the
   * first statement of the writing transaction; pass the number of rows it changed to `check`.
   */
  raise(resource: string, token: number): SqlStatement;
  /** Reads the resource's row in the guard table, for `check`. */
  read(resource: string): SqlStatement;
  /** For the `SET` of an `UPDATE`: sets the token, which is the nth parameter. */
  stamp(parameter?: number): string;
  /** For the `WHERE` of the same `UPDATE`: no later holder has written. Takes the token as the nth parameter again. */
  notStale(parameter?: number): string;
  /**
   * Throws when no row was changed. Roll back, and stop. Without `rows` that is a `LeaseLostError`: a later holder has
   * written, or there is no such row. `rows` tells these apart. They are the result of a `SELECT` of the token column,
   * of the same row, made after nothing was changed, `FOR UPDATE` in MySQL. Then a missing row is a `NoRowChangedError`.
   */
  check(rowsChanged: number | bigint, token: number, rows?: readonly unknown[]): void;
}

const DIALECTS: readonly SqlDialect[] = ['sqlite', 'postgres', 'mysql'];
/** Enough for a namespace and a key. Bytes, because two texts that MySQL's collations call equal are two resources. */
const MYSQL_COLUMNS =
  'resource VARBINARY(1024) NOT NULL PRIMARY KEY, token BIGINT NOT NULL, raises BIGINT NOT NULL DEFAULT 0';
const COLUMNS = 'resource TEXT NOT NULL PRIMARY KEY, token BIGINT NOT NULL';

/** A guard for SQL databases: it writes the statements, and opens no connection. */
export function sqlGuard(options: SqlGuardOptions = {}): SqlGuard {
  checkOptionNames(options, ['dialect', 'column', 'table']);
  const { dialect = 'sqlite', column = 'fence' } = options;
  if (!DIALECTS.includes(dialect)) {
    throw new InvalidArgumentError(
      `The dialect is 'sqlite', 'postgres' or 'mysql', not ${JSON.stringify(dialect)}.`,
    );
  }
  const isMysql = dialect === 'mysql';
  const quote = isMysql ? '`' : '"';
  const fence = quoted(column, 'column', quote);
  const table = (options.table ?? 'holdfast_fences')
    .split('.')
    .map((name) => quoted(name, 'table', quote))
    .join('.');

  function placeholder(parameter: number | undefined): string {
    if (dialect !== 'postgres') return questionMark(parameter);
    if (parameter !== undefined && Number.isSafeInteger(parameter) && parameter > 0) return `$${parameter}`;
    throw new InvalidArgumentError('PostgreSQL numbers its parameters: say which one, from 1, is the token.');
  }
  const [first, second] = dialect === 'postgres' ? ['$1', '$2'] : ['?', '?'];
  const onConflict = isMysql
    ? 'ON DUPLICATE KEY UPDATE resource = resource'
    : 'ON CONFLICT (resource) DO NOTHING';

  return {
    createTable: `CREATE TABLE IF NOT EXISTS ${table} (${isMysql ? MYSQL_COLUMNS : COLUMNS})`,
    createRow: (resource) => ({
      text: `INSERT INTO ${table} (resource, token) VALUES (${first}, 0) ${onConflict}`,
      values: [checkedResource(resource)],
    }),
    raise(resource, token) {
      checkToken(token);
      checkedResource(resource);
      if (isMysql) {
        const text = `UPDATE ${table} SET token = ?, raises = raises + 1 WHERE resource = ? AND token <= ?`;
        return { text, values: [token, resource, token] };
      }
      return {
        text:
          `INSERT INTO ${table} AS guard (resource, token) VALUES (${first}, ${second}) ` +
          'ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE guard.token <= excluded.token',
        values: [resource, token],
      };
    },
    read: (resource) => ({
      text: `SELECT token AS ${fence} FROM ${table} WHERE resource = ${first}${isMysql ? ' FOR UPDATE' : ''}`,
      values: [checkedResource(resource)],
    }),
    stamp: (parameter) => `${fence} = ${placeholder(parameter)}`,
    // A row older than the column has no token yet, and accepts any.
    notStale: (parameter) => `COALESCE(${fence}, 0) <= ${placeholder(parameter)}`,
    check: (rowsChanged, token, rows) => checkRows({ rowsChanged, token, rows, column, isMysql }),
  };
}

function checkedResource(resource: string): string {
  if (typeof resource === 'string' && resource !== '') return resource;
  throw new InvalidArgumentError('A guarded resource has a name: a string that is not empty.');
}

/** A number would be meant for PostgreSQL: its server would only say that the syntax is wrong. */
function questionMark(parameter: number | undefined): string {
  if (parameter === undefined) return '?';
  throw new InvalidArgumentError(
    `Only PostgreSQL numbers its parameters: leave the ${parameter} out, or say { dialect: 'postgres' }.`,
  );
}

/** Names cannot be parameters, so only plain ones are accepted. Quoted, so that `order` works too. */
function quoted(name: string, what: string, quote: string): string {
  if (/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(name)) return `${quote}${name}${quote}`;
  throw new InvalidArgumentError(
    `A ${what} has a name of letters, digits and _, at most 63, no digit first: not ${JSON.stringify(name)}.`,
  );
}
