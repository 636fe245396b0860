/** The table of a DynamoDB store: made through a client of its own, or printed as a CloudFormation template. */
import { type Finding, HoldfastError, StoreError } from '../protocol/index.js';
import { explain } from '../stores/clients/errors.js';
import type { CreatedTable } from '../stores/dynamodb/index.js';
import { loadFirst } from './client-package.js';
import { dynamodbTarget } from './dynamodb.js';
import { DYNAMODB_CLIENTS } from './dynamodb-client.js';
import { FIRST_VERSION, type Migration, type MigrationOptions, refuseOptions } from './migration.js';

export async function dynamodbMigration(rest: string, options: MigrationOptions): Promise<Migration> {
  refuseOptions(options, ['supabase'], 'dynamodb');
  const { target, options: wanted } = dynamodbTarget(rest);
  const { createTable } = await import('../stores/dynamodb/index.js');
  const { placeOf } = await import('../stores/dynamodb/options.js');
  const { timeToLiveFinding } = await import('../stores/dynamodb/table.js');
  const { table, layout } = placeOf(wanted);
  return {
    kind: 'table',
    name: table,
    script: templateOf(table, layout.table),
    async apply() {
      const open = await loadFirst('DynamoDB', DYNAMODB_CLIENTS);
      const { client, connection } = open(target);
      try {
        const found = await createTable(client, { ...wanted, timeToLive: options.timeToLive ?? false });
        return {
          from: found.created ? 0 : FIRST_VERSION,
          to: FIRST_VERSION,
          notes: notesOn(found, timeToLiveFinding(found.timeToLive, layout)),
        };
      } catch (error) {
        if (error instanceof HoldfastError) throw error;
        const cause = explain(error, connection.trouble(), connection.where);
        throw new StoreError(`the table was not made: ${cause.message}`, { operation: 'migrate', cause });
      } finally {
        await connection.end();
      }
    },
  };
}

function notesOn({ created, turnedOn, timeToLive }: CreatedTable, finding: Finding): readonly string[] {
  if (turnedOn && !created) return [`Time to live was turned on, by the attribute "${timeToLive}".`];
  return finding.level === 'warning' ? [`${finding.text} Nothing was changed.`] : [];
}

interface Shape {
  readonly partitionKey: string;
  readonly sortKey: string | null;
  readonly ttlAttribute: string | null;
}

function templateOf(table: string, { partitionKey, sortKey, ttlAttribute }: Shape): string {
  const keys = [partitionKey, ...(sortKey === null ? [] : [sortKey])];
  const template = {
    AWSTemplateFormatVersion: '2010-09-09',
    Resources: {
      Locks: {
        Type: 'AWS::DynamoDB::Table',
        Properties: {
          TableName: table,
          BillingMode: 'PAY_PER_REQUEST',
          AttributeDefinitions: keys.map((name) => ({ AttributeName: name, AttributeType: 'S' })),
          KeySchema: keys.map((name, at) => ({ AttributeName: name, KeyType: at === 0 ? 'HASH' : 'RANGE' })),
          ...(ttlAttribute === null
            ? {}
            : { TimeToLiveSpecification: { AttributeName: ttlAttribute, Enabled: true } }),
        },
      },
    },
  };
  return JSON.stringify(template, null, 2);
}
