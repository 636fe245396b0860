/** `holdfast migrate`: creates the schema, table, bucket or quorum that a store needs at its server, or prints it. */
import { type Migration, migrationOf } from 'holdfast';
import type { Command } from '../command.js';
import { EXIT } from '../failure.js';
import { jsonText, printable, quote } from '../printing/terminal.js';
import { storeUrl, withUrl } from '../session.js';

export const migrate: Command = {
  name: 'migrate',
  operands: { min: 0, max: 0, text: '[--print] [--supabase] [--time-to-live]' },
  options: ['print', 'supabase', 'time-to-live'],
  without: ['namespace'],
  summary: 'create or update what a store needs: a schema, a table, a bucket or a quorum',
  about: `Creates what a store needs at its server before the first lock: in PostgreSQL a schema with tables and functions, in
MySQL and DynamoDB a table, in NATS a bucket; of Redis servers a quorum, in which servers that lost their data are
enrolled again. Updates Holdfast's own tables and functions where they exist, and changes nothing else. It can be run
again, and by several at once. The default name is "holdfast"; the URL may name another:
postgres://HOST/DATABASE?schema=NAME, mysql://HOST/DATABASE?table=NAME, dynamodb://REGION/TABLE, nats://HOST/BUCKET.
With --print it prints SQL, a CloudFormation template or the configuration of a stream for another tool, without
connecting. With --supabase it also grants what the Supabase store needs. With --time-to-live it also turns time to live
on for an existing DynamoDB table: DynamoDB then deletes every item whose time has passed, also those of an application.`,
  examples: [
    ['holdfast migrate --store postgres://app@db.internal/app', 'once, before the first lock'],
    ['holdfast migrate --store "$DATABASE_URL" --print > holdfast.sql', 'for your own migration tool'],
    ['holdfast migrate --store "$DATABASE_URL" --supabase', 'for use over Supabase HTTP interface too'],
    [
      'holdfast migrate --store dynamodb://eu-west-1/locks',
      'a table with on-demand capacity and time to live',
    ],
    ['holdfast migrate --store nats://nats.internal/locks?replicas=3', 'a bucket on three servers'],
    ['holdfast migrate --store redis-quorum://a.internal,b.internal,c.internal', 'a quorum of Redis servers'],
  ],

  async run({ options }, terminal) {
    const url = await storeUrl(options);
    const wanted = { supabase: options.has('supabase'), timeToLive: options.has('time-to-live') };
    const migration = await withUrl(url, () => migrationOf(url, wanted));
    if (options.has('print')) {
      terminal.out(migration.script.trimEnd());
      return EXIT.ok;
    }
    const { from, to, notes } = await withUrl(url, () => migration.apply());
    const { kind, name } = migration;
    if (options.has('json')) terminal.out(jsonText({ [kind]: name, from, to, notes }));
    else terminal.out([sentence(migration, from, to), ...notes.map(printable)].join('\n'));
    return EXIT.ok;
  },
};

function sentence({ kind, name }: Migration, from: number, to: number): string {
  const what = `The ${kind} ${quote(name)}`;
  // Only a schema changes from version to version.
  if (kind !== 'schema') return `${what} ${from === 0 ? 'was created' : 'exists already'}.`;
  if (from === to) return `${what} is at version ${to} already.`;
  if (from > 0) return `${what} was updated from version ${from} to ${to}.`;
  // The schema itself may have existed.
  return `Holdfast's tables and functions were created in the schema ${quote(name)}, at version ${to}.`;
}
