/** Says a batch of commands to a database as one statement. */
import { type Command, UnsupportedError } from '../../protocol/index.js';
import { type Answer, answersIn, type Line } from './caller.js';
import type { Database } from './clients.js';
import { quoteName, quoteText } from './sql/quoting.js';
import { inWords, isConnectionTrouble } from './trouble.js';

export function sqlLine(database: Database, schema: string): Line {
  /** Set once a transaction was found to begin as something else than READ COMMITTED. */
  let forced = false;

  const call = (...parts: readonly string[]): string =>
    `SELECT ${quoteName(schema)}.apply(${parts.join(', ')})::text AS answers`;
  const usual = call('$1::text::jsonb', '$2::integer', '$3::boolean');

  async function ask(
    commands: readonly Command[],
    cleanUp: number,
    hints: boolean,
    urgent: boolean,
  ): Promise<readonly Answer[]> {
    const json = JSON.stringify(commands);
    if (!forced) {
      const rows = await database.rows(usual, [json, String(cleanUp), String(hints)], urgent);
      const answers = answersIn(jsonIn(rows, 'answers'));
      if (answers !== 'isolated') return answers;
      forced = true;
    }
    const literal = call(`${quoteText(json)}::jsonb`, String(cleanUp), String(hints));
    const text = `SET TRANSACTION ISOLATION LEVEL READ COMMITTED; ${literal}`;
    const answers = answersIn(jsonIn(await database.script(text, urgent), 'answers'));
    if (answers !== 'isolated') return answers;
    throw new UnsupportedError('These transactions cannot be made READ COMMITTED, and locks need that.');
  }

  return {
    mostTogether: database.mostTogether,
    ask,
    inWords: (error, key) => inWords(error, schema, key),
    failed(error) {
      if (isConnectionTrouble(error)) database.ears?.doubt();
    },
  };
}

/** The only row's only column, which is JSON as text: how a client reads JSON by itself is its user's business. */
export function jsonIn(rows: readonly unknown[], column: string): unknown {
  const row = rows[0] as Readonly<Record<string, unknown>> | undefined;
  const text = row?.[column];
  if (typeof text === 'string') return JSON.parse(text);
  if (text === null) return null;
  throw new Error('PostgreSQL answered without what was asked for.');
}
