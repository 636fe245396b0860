/** `dynamodb://REGION/TABLE`: from the URL to a client and a store on it. */
import { InvalidArgumentError, type Store } from '../protocol/index.js';
import type { DynamodbStoreOptions } from '../stores/dynamodb/index.js';
import { loadFirst } from './client-package.js';
import { attended } from './connection.js';
import { DYNAMODB_CLIENTS, type Target } from './dynamodb-client.js';
import { checkedFlag } from './option-values.js';
import { parseServerUrl, type ServerUrl } from './url.js';

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

export async function openDynamodb(rest: string, clients = DYNAMODB_CLIENTS): Promise<Store> {
  const { target, options } = dynamodbTarget(rest);
  const open = await loadFirst('DynamoDB', clients);
  const { dynamodbStore } = await import('../stores/dynamodb/index.js');
  const { client, connection } = open(target);
  try {
    return attended(dynamodbStore(client, options), connection);
  } catch (error) {
    await connection.end();
    throw error;
  }
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

/** What the names may be is the store's to check. */
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

/** For an emulator, above all. Those of AWS are better left to the SDK, which finds them where every AWS tool does. */
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
