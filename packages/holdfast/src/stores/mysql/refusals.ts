/** Errors about the table and the rights on it, with advice. */
import { UnsupportedError } from '../../protocol/index.js';
import { codeOf, messageOf, notExecuted } from '../clients/errors.js';

const ADVICE: readonly (readonly [code: RegExp, text: (table: string) => string])[] = [
  [
    /^(?:ER_NO_SUCH_TABLE|ER_BAD_FIELD_ERROR|ER_NO_DB_ERROR)$/,
    (table) =>
      `The table ${table} is not there, or has other columns: run \`holdfast migrate --store URL\` once.`,
  ],
  [
    /^(?:ER_TABLEACCESS_DENIED_ERROR|ER_COLUMNACCESS_DENIED_ERROR)$/,
    (table) => `This user needs the rights SELECT, INSERT, UPDATE and DELETE on the table ${table}.`,
  ],
];

/** Rejects with an `UnsupportedError` or a `NotExecutedError` where that is certain; other errors stay as they are. */
export async function explained<T>(table: string, run: Promise<T>): Promise<T> {
  try {
    return await run;
  } catch (cause) {
    const advice = ADVICE.find(([code]) => code.test(codeOf(cause)))?.[1];
    if (!advice) throw notExecuted(cause) ?? cause;
    throw new UnsupportedError(`${advice(table)} (${messageOf(cause)})`, { cause });
  }
}
