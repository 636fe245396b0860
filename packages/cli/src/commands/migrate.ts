/** `holdfast migrate`: makes the schema in a PostgreSQL database, brings it up to date, or prints its SQL. */
import { type Migration, migrationOf } from 'holdfast';
import type { Command } from '../command.js';
import { EXIT } from '../exit.js';
import { printable } from '../output.js';
import { explained, storeUrl } from '../session.js';

export const migrate: Command = {
  name: 'migrate',
  operands: { min: 0, max: 0, text: '[--print] [--supabase]' },
  takesCommandLine: false,
  options: ['print', 'supabase'],
  summary: 'make or update the schema in a PostgreSQL database',
  about: `Makes the tables and functions that the PostgreSQL store needs, in a schema of their own, or brings them up to
date. May be run again, and by several at once. The schema is "holdfast" unless the URL says otherwise:
postgres://HOST/DATABASE?schema=NAME. With --print it prints the SQL and connects to nothing. With --supabase it also
grants what the Supabase store needs.`,
  examples: [
    ['holdfast migrate --store postgres://app@db.internal/app', 'once, before the first lock'],
    ['holdfast migrate --store "$DATABASE_URL" --print > holdfast.sql', 'for a migration tool of your own'],
    ['holdfast migrate --store "$DATABASE_URL" --supabase', 'for use over the HTTP interface too'],
  ],

  async run({ options }, terminal) {
    const url = storeUrl(options, process.env);
    const migration = await explained(url, () => migrationOf(url, { supabase: options.has('supabase') }));
    if (options.has('print')) {
      terminal.out(migration.sql.trimEnd());
      return EXIT.ok;
    }
    const { from, to } = await explained(url, () => migration.apply());
    if (options.has('json')) terminal.out(JSON.stringify({ schema: migration.schema, from, to }));
    else terminal.out(sentence(migration, from, to));
    return EXIT.ok;
  },
};

function sentence({ schema }: Migration, from: number, to: number): string {
  const name = `The schema "${printable(schema)}"`;
  if (from === to) return `${name} is at version ${to} already.`;
  return from === 0 ? `${name} was made, at version ${to}.` : `${name} went from version ${from} to ${to}.`;
}
