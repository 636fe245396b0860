/**
 * Makes an SQL database refuse a stale token. It generates SQL; it opens no connection, runs no statement and imports no
 * driver.
 *
 * Two ways. A row with a token column of its own: one `UPDATE` that sets the token, unless a later holder has set a higher
 * one. Anything else: a guard table, raised by the first statement of the writing transaction. Raising locks the guard's
 * row until that transaction ends, so an older holder cannot write in between.
 *
 * The same token may write any number of times. A token never goes down.
 */
import { InvalidArgumentError, LeaseLostError } from '../protocol/errors.js';
import { checkOptionNames } from '../protocol/option-names.js';
import { checkToken } from './token.js';

/** `sqlite` writes parameters as `?`, `postgres` as `$1`. */
export type SqlDialect = 'sqlite' | 'postgres';

export interface SqlGuardOptions {
  /** Default `sqlite`. */
  readonly dialect?: SqlDialect;
  /** The token column of rows that have their own. Default `fence`. Make it `BIGINT NOT NULL DEFAULT 0`. */
  readonly column?: string;
  /** The guard table, with its schema if needed. Default `holdfast_fences`. */
  readonly table?: string;
}

export interface SqlStatement {
  readonly text: string;
  readonly values: readonly (string | number)[];
}

export interface SqlGuard {
  /** Creates the guard table where it does not exist. */
  readonly createTable: string;
  /**
   * Raises the resource's token in the guard table, or changes nothing when a later holder has written. Must be the
   * first statement of the writing transaction; pass the number of rows it changed to `check`.
   */
  raise(resource: string, token: number): SqlStatement;
  /** For the `SET` of an `UPDATE`: sets the token, which is the nth parameter. */
  stamp(parameter?: number): string;
  /** For the `WHERE` of the same `UPDATE`: no later holder has written. Takes the token as the nth parameter again. */
  notStale(parameter?: number): string;
  /** Throws `LeaseLostError` when no row was changed. Roll back, and stop. */
  check(rowsChanged: number | bigint, token: number): void;
}

export function sqlGuard(options: SqlGuardOptions = {}): SqlGuard {
  checkOptionNames(options, ['dialect', 'column', 'table']);
  const { dialect = 'sqlite' } = options;
  if (dialect !== 'sqlite' && dialect !== 'postgres') {
    throw new InvalidArgumentError(`The dialect is 'sqlite' or 'postgres', not ${JSON.stringify(dialect)}.`);
  }
  const column = quoted(options.column ?? 'fence', 'column');
  const table = (options.table ?? 'holdfast_fences')
    .split('.')
    .map((name) => quoted(name, 'table'))
    .join('.');

  function placeholder(parameter: number | undefined): string {
    if (dialect === 'sqlite') return '?';
    if (parameter !== undefined && Number.isSafeInteger(parameter) && parameter > 0) return `$${parameter}`;
    throw new InvalidArgumentError('PostgreSQL numbers its parameters: say which one, from 1, is the token.');
  }

  return {
    createTable: `CREATE TABLE IF NOT EXISTS ${table} (resource TEXT NOT NULL PRIMARY KEY, token BIGINT NOT NULL)`,
    raise(resource, token) {
      checkToken(token);
      if (typeof resource !== 'string' || resource === '') {
        throw new InvalidArgumentError('A guarded resource has a name: a string that is not empty.');
      }
      return {
        text:
          `INSERT INTO ${table} AS guard (resource, token) VALUES (${placeholder(1)}, ${placeholder(2)}) ` +
          'ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE guard.token <= excluded.token',
        values: [resource, token],
      };
    },
    stamp: (parameter) => `${column} = ${placeholder(parameter)}`,
    // A row older than the column has no token yet, and accepts any.
    notStale: (parameter) => `COALESCE(${column}, 0) <= ${placeholder(parameter)}`,
    check: checkChanged,
  };
}

function checkChanged(rowsChanged: number | bigint, token: number): void {
  checkToken(token);
  const isCount = typeof rowsChanged === 'bigint' || Number.isSafeInteger(rowsChanged);
  if (!isCount || rowsChanged < 0) {
    throw new InvalidArgumentError(
      `The guard needs the number of rows that the driver says were changed, not ${String(rowsChanged)}.`,
    );
  }
  if (rowsChanged > 0) return;
  throw new LeaseLostError(
    `Nothing was written with token ${token}: a later holder has written, or there is no such row. ` +
      'Roll back, and stop.',
  );
}

/** Names cannot be parameters, so only plain ones are accepted. Quoted, so that `order` works too. */
function quoted(name: string, what: string): string {
  if (/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(name)) return `"${name}"`;
  throw new InvalidArgumentError(
    `A ${what} has a name of letters, digits and _, at most 63, no digit first: not ${JSON.stringify(name)}.`,
  );
}
