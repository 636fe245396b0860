/** `dynamodb://REGION/TABLE`: the store on a client of its own, and the migration of its table. */
import { type Finding, InvalidArgumentError, type Store } from '../../protocol/index.js';
import { FIRST_VERSION, type Migration, type MigrationOptions, refuseOptions } from '../clients/migration.js';
import { loadFirst, migrateOn, storeOn } from '../clients/opened-client.js';
import { checkedFlag, parseServerUrl, type ServerUrl } from '../clients/url.js';
import { type CreatedTable, createTable, type DynamodbStoreOptions, dynamodbStore } from './index.js';
import { DYNAMODB_CLIENTS, type Target } from './open-client.js';
import { placeOf } from './options.js';
import { timeToLiveFinding } from './table.js';

const FORM = 'dynamodb://REGION/TABLE';
const OPTIONS = [
  'endpoint',
  'queue',
  'layout',
  'partition-key',
  'sort-key',
  'sort-value',
  'ttl-attribute',
] as const;
const REGION = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

export interface DynamodbTarget {
  readonly target: Target;
  readonly options: DynamodbStoreOptions;
}

export async function openStore(_scheme: string, rest: string, clients = DYNAMODB_CLIENTS): Promise<Store> {
  const { target, options } = dynamodbTarget(rest);
  const open = await loadFirst('DynamoDB', clients);
  return storeOn(open(target), (client) => dynamodbStore(client, options));
}

export async function migrationOf(
  _scheme: string,
  rest: string,
  options: MigrationOptions,
): Promise<Migration> {
  refuseOptions(options, ['supabase'], 'dynamodb');
  const { target, options: wanted } = dynamodbTarget(rest);
  const { table, layout } = placeOf(wanted);
  return {
    kind: 'table',
    name: table,
    script: templateOf(table, layout.table),
    async apply() {
      const open = await loadFirst('DynamoDB', DYNAMODB_CLIENTS);
      return migrateOn(open(target), 'the table was not made', async (client) => {
        const found = await createTable(client, { ...wanted, timeToLive: options.timeToLive ?? false });
        return {
          from: found.created ? 0 : FIRST_VERSION,
          to: FIRST_VERSION,
          notes: notesOn(found, timeToLiveFinding(found.timeToLive, layout)),
        };
      });
    },
  };
}

export function dynamodbTarget(rest: string): DynamodbTarget {
  const url = parseServerUrl('dynamodb', rest, FORM, OPTIONS);
  const endpoint = url.options.get('endpoint');
  return {
    target: {
      region: regionOf(url),
      endpoint: endpoint === undefined ? undefined : checkedEndpoint(endpoint),
      credentials: credentialsOf(url),
    },
    options: storeOptions(url),
  };
}

/** The store checks the names. */
function storeOptions({ path, options }: ServerUrl): DynamodbStoreOptions {
  const table = path.replace(/\/$/, '');
  const name = options.get('sort-key');
  const value = options.get('sort-value');
  if ((name === undefined) !== (value === undefined)) {
    throw new InvalidArgumentError(
      'sort-key and sort-value belong together: the name of the sort key, and what every lock has there.',
    );
  }
  const queue = options.get('queue');
  const layout = options.get('layout');
  const partitionKey = options.get('partition-key');
  const ttlAttribute = options.get('ttl-attribute');
  return {
    ...(table === '' ? {} : { table }),
    ...(queue === undefined ? {} : { queue: checkedFlag('queue', queue) }),
    ...(layout === undefined ? {} : { layout: layout as NonNullable<DynamodbStoreOptions['layout']> }),
    ...(partitionKey === undefined ? {} : { partitionKey }),
    ...(ttlAttribute === undefined ? {} : { ttlAttribute }),
    ...(name === undefined || value === undefined ? {} : { sortKey: { name, value } }),
  };
}

function regionOf({ addresses }: ServerUrl): string | undefined {
  const [address] = addresses;
  if (addresses.length > 1 || address?.port) {
    throw new InvalidArgumentError(
      `Behind dynamodb:// stands a region, as in dynamodb://eu-west-1/locks. A host is named by the option: ${FORM}?endpoint=http://HOST:PORT.`,
    );
  }
  if (!address?.host) return undefined;
  if (!REGION.test(address.host)) {
    throw new InvalidArgumentError(
      `Behind dynamodb:// stands a region, such as eu-west-1. A host is named by the option: ${FORM}?endpoint=http://HOST:PORT.`,
    );
  }
  return address.host;
}

/** Mainly for emulators. Leave AWS credentials to the SDK, which finds them where every AWS tool does. */
function credentialsOf({ user, password }: ServerUrl): Target['credentials'] {
  if (user === null && password === null) return undefined;
  if (user === null || password === null) {
    throw new InvalidArgumentError(
      'An access key is written with its secret, dynamodb://KEY:SECRET@REGION/TABLE, or both are left to the environment.',
    );
  }
  return { accessKeyId: user, secretAccessKey: password };
}

function checkedEndpoint(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (url && isHttp && url.username === '' && url.password === '') return text;
  throw new InvalidArgumentError(
    'The endpoint is a URL of its own: endpoint=http://HOST:PORT or https://HOST:PORT, without user and password.',
  );
}

function notesOn({ created, turnedOn, timeToLive }: CreatedTable, finding: Finding): readonly string[] {
  if (turnedOn && !created) return [`Time to live was turned on, by the attribute "${timeToLive}".`];
  return finding.level === 'warning' ? [`${finding.text} Nothing was changed.`] : [];
}

interface TableShape {
  readonly partitionKey: string;
  readonly sortKey: string | null;
  readonly ttlAttribute: string | null;
}

function templateOf(table: string, { partitionKey, sortKey, ttlAttribute }: TableShape): string {
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
