/** Classifies the server's errors, and explains them to users. */
import { NotExecutedError, UnsupportedError } from '../../protocol/index.js';
import { messageOf, notExecuted } from '../clients/errors.js';
import { quoteName } from './sql/names.js';

export function sqlState(error: unknown): string | null {
  if (typeof error !== 'object' || error === null || !('code' in error)) return null;
  return typeof error.code === 'string' ? error.code : null;
}

const LOCK_TIMEOUT = '55P03';
const DEADLOCK = '40P01';
const LIMIT = '54000';
const UNTRANSLATABLE = '22P05';

/** Whether the lock on a row was not available in time. */
export function isLockedOut(error: unknown): boolean {
  return sqlState(error) === LOCK_TIMEOUT;
}

/** For a row that was locked for too long: the server undid the statement. */
export function lockedOutError(cause: unknown): NotExecutedError {
  return new NotExecutedError(
    'another transaction has kept the row of this key locked for too long: end it, or try again',
    'at-once',
    cause,
  );
}

/** Whether a limit was reached, such as the size of the NOTIFY queue. */
export function isOverLimit(error: unknown): boolean {
  return sqlState(error) === LIMIT;
}

/**
 * Whether one command made the whole statement fail: its row was locked, or its text cannot be stored. The server undid
 * the statement, so its commands can be sent again one by one.
 */
export function isOfOneCommand(error: unknown): boolean {
  const state = sqlState(error);
  return state === LOCK_TIMEOUT || state === DEADLOCK || state === LIMIT || state?.startsWith('22') === true;
}

/** Five letters without a digit are a system error, such as EPIPE. */
const SQLSTATE = /^(?=.*\d)[0-9A-Z]{5}$/;

/**
 * Whether the connection is gone or never existed: no SQLSTATE, or that of a shutdown. A cancelled statement (57014) is
 * neither.
 */
export function isConnectionError(error: unknown): boolean {
  const state = sqlState(error);
  return state === null || !SQLSTATE.test(state) || state.startsWith('08') || state.startsWith('57P');
}

/** Returns refusals and `NotExecutedError` with advice, and any other error unchanged: its outcome is unknown. */
export function explain(cause: unknown, schema: string, key?: string): unknown {
  const said = messageOf(cause);
  switch (sqlState(cause)) {
    case '3F000':
    case '42P01':
    case '42883':
    case '42704':
      return new UnsupportedError(
        `The schema ${quoteName(schema)} of this database is not ready for Holdfast (${said}). ` +
          'Run `holdfast migrate --store URL` once, or call migrate(client).',
        { key, cause },
      );
    case '42501':
      return new UnsupportedError(
        `The database user may not use the schema ${quoteName(schema)} (${said}). ` +
          'The required grants are at the top of the output of `holdfast migrate --store URL --print`.',
        { key, cause },
      );
    case UNTRANSLATABLE:
      return new UnsupportedError(
        `The database's encoding cannot store this text (${said}). ` +
          'Use other names, or a database that is in UTF8.',
        { key, cause },
      );
    case LOCK_TIMEOUT:
      return lockedOutError(cause);
    default:
      return notExecuted(cause) ?? cause;
  }
}
