/** `holdfast migrate`: makes what a store needs at its server (a schema, a table, a bucket), or prints it. */
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
  summary: 'make or update what a store needs: a schema, a table or a bucket',
  about: `Makes what locks need at a server before the first one: in PostgreSQL a schema of tables and functions, in DynamoDB
a table, in NATS a bucket. Brings it up to date where it is there. May be run again, and by several at once. Each is
named "holdfast" unless the URL says otherwise: postgres://HOST/DATABASE?schema=NAME, dynamodb://REGION/TABLE,
nats://HOST/BUCKET. With --print it connects to nothing and prints it for another tool: SQL, a CloudFormation template,
the configuration of a stream. With --supabase it also grants what the Supabase store needs.`,
  examples: [
    ['holdfast migrate --store postgres://app@db.internal/app', 'once, before the first lock'],
    ['holdfast migrate --store "$DATABASE_URL" --print > holdfast.sql', 'for a migration tool of your own'],
    ['holdfast migrate --store "$DATABASE_URL" --supabase', 'for use over the HTTP interface too'],
    [
      'holdfast migrate --store dynamodb://eu-west-1/locks',
      'a table, paid by request, with its time to live',
    ],
    ['holdfast migrate --store nats://nats.internal/locks?replicas=3', 'a bucket on three servers'],
  ],

  async run({ options }, terminal) {
    const url = storeUrl(options, process.env);
    const migration = await explained(url, () => migrationOf(url, { supabase: options.has('supabase') }));
    if (options.has('print')) {
      terminal.out(migration.script.trimEnd());
      return EXIT.ok;
    }
    const { from, to } = await explained(url, () => migration.apply());
    const { kind, name } = migration;
    if (options.has('json')) terminal.out(JSON.stringify({ [kind]: name, from, to }));
    else terminal.out(sentence(migration, from, to));
    return EXIT.ok;
  },
};

function sentence({ kind, name }: Migration, from: number, to: number): string {
  const what = `The ${kind} "${printable(name)}"`;
  // Only a schema changes from version to version.
  if (kind !== 'schema') return `${what} ${from === 0 ? 'was made' : 'is there already'}.`;
  if (from === to) return `${what} is at version ${to} already.`;
  return from === 0 ? `${what} was made, at version ${to}.` : `${what} went from version ${from} to ${to}.`;
}
