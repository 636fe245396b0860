/** Classifies the server's errors, and explains them to users. */
import { UnsupportedError } from '../../protocol/index.js';
import { messageOf, notExecuted } from '../clients/errors.js';

/** Returns refusals with advice, and any other error unchanged: its outcome is unknown. */
export function explain(cause: unknown, table: string, key?: string): unknown {
  const code = cause instanceof Error && 'code' in cause ? cause.code : null;
  if (code === 'ER_NO_SUCH_TABLE' || code === 'ER_BAD_FIELD_ERROR') {
    return new UnsupportedError(
      `The table ${table} is not there, or has other columns (${messageOf(cause)}). ` +
        'Run `holdfast migrate --store URL` once, or call createTable(client).',
      { key, cause },
    );
  }
  if (code === 'ER_TABLEACCESS_DENIED_ERROR' || code === 'ER_COLUMNACCESS_DENIED_ERROR') {
    return new UnsupportedError(
      `This user needs SELECT, INSERT, UPDATE and DELETE on the table ${table} (${messageOf(cause)}).`,
      { key, cause },
    );
  }
  return notExecuted(cause) ?? cause;
}
