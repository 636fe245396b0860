/** `holdfast migrate`: makes what a store needs at its server (a schema, a table, a bucket), or prints it. */
import { type Migration, migrationOf } from 'holdfast';
import type { Command } from '../command.js';
import { EXIT } from '../exit.js';
import { printable } from '../output.js';
import { explained, storeUrl } from '../session.js';

export const migrate: Command = {
  name: 'migrate',
  operands: { min: 0, max: 0, text: '[--print] [--supabase] [--time-to-live]' },
  takesCommandLine: false,
  options: ['print', 'supabase', 'time-to-live'],
  summary: 'make or update what a store needs: a schema, a table or a bucket',
  about: `Makes what locks need at a server before the first one: in PostgreSQL a schema of tables and functions, in DynamoDB
a table, in NATS a bucket. Brings Holdfast's own tables and functions up to date where they are there, and changes
nothing else. May be run again, and by several at once. Each is named "holdfast" by default, or as the URL says:
postgres://HOST/DATABASE?schema=NAME, dynamodb://REGION/TABLE, nats://HOST/BUCKET. With --print it connects to nothing
and prints it for another tool: SQL, a CloudFormation template, the configuration of a stream. With --supabase it also
grants what the Supabase store needs. With --time-to-live it also turns time to live on at a DynamoDB table that is
there already: DynamoDB then deletes every item whose time has passed, an application's too.`,
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
    const url = await storeUrl(options, process.env);
    const wanted = { supabase: options.has('supabase'), timeToLive: options.has('time-to-live') };
    const migration = await explained(url, () => migrationOf(url, wanted));
    if (options.has('print')) {
      terminal.out(migration.script.trimEnd());
      return EXIT.ok;
    }
    const { from, to, notes } = await explained(url, () => migration.apply());
    const { kind, name } = migration;
    if (options.has('json')) terminal.out(JSON.stringify({ [kind]: name, from, to, notes }));
    else terminal.out([sentence(migration, from, to), ...notes.map(printable)].join('\n'));
    return EXIT.ok;
  },
};

function sentence({ kind, name }: Migration, from: number, to: number): string {
  const what = `The ${kind} "${printable(name)}"`;
  // Only a schema changes from version to version.
  if (kind !== 'schema') return `${what} ${from === 0 ? 'was made' : 'is there already'}.`;
  if (from === to) return `${what} is at version ${to} already.`;
  if (from > 0) return `${what} went from version ${from} to ${to}.`;
  // The schema itself may have been there.
  return `Holdfast's tables and functions were made in the schema "${printable(name)}", at version ${to}.`;
}
