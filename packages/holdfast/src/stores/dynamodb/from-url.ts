/** `dynamodb://REGION/TABLE`: the store on a client of its own, and the migration of its table. */
import { type Finding, InvalidArgumentError, type Store } from '../../protocol/index.js';
import { layoutNamed } from '../clients/layout.js';
import { createdOnce, type Migration, type MigrationOptions, refuseOptions } from '../clients/migration.js';
import { migrateOn, storeOn } from '../clients/opened-client.js';
import { flagIn, given, parseServerUrl, type ServerUrl } from '../clients/url.js';
import { type CreatedTable, createTable, type DynamodbStoreOptions, dynamodbStore } from './index.js';
import type { TableShape } from './layout.js';
import * as layouts from './layouts/index.js';
import { DYNAMODB_CLIENTS, openClient, type Target } from './open-client.js';
import { placeOf } from './options.js';
import { definitionOf, timeToLiveFinding } from './table.js';

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
  return storeOn(await openClient(target, clients), (client) => dynamodbStore(client, options));
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
      return migrateOn(await openClient(target), 'the table was not made', async (client) => {
        const found = await createTable(client, { ...wanted, timeToLive: options.timeToLive ?? false });
        return createdOnce(found.created, notesOn(found, timeToLiveFinding(found.timeToLive, layout)));
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
function storeOptions(url: ServerUrl): DynamodbStoreOptions {
  const { path, options } = url;
  const name = options.get('sort-key');
  const value = options.get('sort-value');
  if ((name === undefined) !== (value === undefined)) {
    throw new InvalidArgumentError(
      'sort-key and sort-value belong together: the name of the sort key, and what every lock has there.',
    );
  }
  return given({
    table: path.replace(/\/$/, '') || undefined,
    queue: flagIn(url, 'queue'),
    layout: layoutNamed(layouts, options.get('layout'), 'DynamoDB'),
    partitionKey: options.get('partition-key'),
    ttlAttribute: options.get('ttl-attribute'),
    sortKey: name === undefined || value === undefined ? undefined : { name, value },
  });
}

function regionOf({ addresses }: ServerUrl): string | undefined {
  const [{ host = '', port = null } = {}] = addresses;
  if (addresses.length <= 1 && port === null && (host === '' || REGION.test(host))) return host || undefined;
  throw new InvalidArgumentError(
    `dynamodb:// is followed by a region, as in dynamodb://eu-west-1/locks. For a host, use the option: ${FORM}?endpoint=http://HOST:PORT.`,
  );
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

function templateOf(table: string, shape: TableShape): string {
  const AttributeName = shape.ttlAttribute;
  const template = {
    AWSTemplateFormatVersion: '2010-09-09',
    Resources: {
      Locks: {
        Type: 'AWS::DynamoDB::Table',
        Properties: {
          ...definitionOf(table, shape),
          ...(AttributeName !== null && { TimeToLiveSpecification: { AttributeName, Enabled: true } }),
        },
      },
    },
  };
  return JSON.stringify(template, null, 2);
}
