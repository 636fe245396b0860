/** Errors of statements on a table of other software. */
import { NotExecutedError, UnsupportedError } from '../../../protocol/index.js';
import { messageOf } from '../../clients/errors.js';
import { explain, sqlState } from '../errors.js';
import { type Place, tableOf } from './row-sql.js';

/** Returns refusals and `NotExecutedError` with advice, and any other error unchanged: its outcome is unknown. */
export function explainTable(cause: unknown, { layout, schema, table }: Place, key: string): unknown {
  const said = messageOf(cause);
  const where = `The table ${tableOf(schema, table)}`;
  const refusal = (text: string): UnsupportedError =>
    new UnsupportedError(`${text} Nothing was changed.`, { key, cause });
  switch (sqlState(cause)) {
    case '3F000':
    case '42P01':
    case '42703':
    case '42P10':
      return refusal(
        `${where} is not ready for Holdfast (${said}). Run \`holdfast migrate --store 'URL?layout=${layout.name}'\` ` +
          'once, or call migrate with the same options. Is it the right table?',
      );
    case '42501':
      return refusal(
        `The database user may not use the table (${said}). Grant SELECT, INSERT, UPDATE and DELETE on it.`,
      );
    case '22001':
      return refusal(`The name or the owner is too long for a column of the table (${said}).`);
    case '23502':
    case '23514':
      return refusal(`${where} refuses the row of this lock (${said}). Is it the right table?`);
    case '40001':
    case '40P01':
      return new NotExecutedError('another transaction changed the row at the same moment', 'at-once', cause);
    default:
      return explain(cause, schema, key);
  }
}
