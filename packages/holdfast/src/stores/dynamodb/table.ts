/** What DynamoDB says about a table, and whether locks can be kept in it. */
import { callOnce, type DynamodbClient } from './client.js';
import type { TableShape } from './layout.js';
import { inWords, nameOf } from './trouble.js';

export interface Table {
  readonly TableStatus?: string;
  readonly TableArn?: string;
  readonly KeySchema?: readonly { readonly AttributeName?: string; readonly KeyType?: string }[];
  readonly AttributeDefinitions?: readonly {
    readonly AttributeName?: string;
    readonly AttributeType?: string;
  }[];
  readonly BillingModeSummary?: { readonly BillingMode?: string };
  readonly ProvisionedThroughput?: { readonly WriteCapacityUnits?: number };
  readonly Replicas?: readonly { readonly RegionName?: string }[];
  readonly MultiRegionConsistency?: string;
}

export interface TimeToLive {
  readonly TimeToLiveStatus?: string;
  readonly AttributeName?: string;
}

/** Null where there is none. */
export async function describe(client: DynamodbClient, table: string): Promise<Table | null> {
  try {
    const answer = await callOnce((options) => client.describeTable({ TableName: table } as never, options));
    return (answer as { readonly Table?: Table }).Table ?? null;
  } catch (error) {
    if (nameOf(error) === 'ResourceNotFoundException') return null;
    throw inWords(error, table);
  }
}

export async function timeToLiveOf(client: DynamodbClient, table: string): Promise<TimeToLive> {
  const answer = await callOnce((options) =>
    client.describeTimeToLive({ TableName: table } as never, options),
  );
  return (answer as { readonly TimeToLiveDescription?: TimeToLive }).TimeToLiveDescription ?? {};
}

/** In words, what is wrong with the primary key; null when it is as it has to be. */
export function wrongKey(found: Table, { partitionKey, sortKey }: TableShape): string | null {
  const keyOf = (kind: string): string | undefined =>
    found.KeySchema?.find(({ KeyType }) => KeyType === kind)?.AttributeName;
  const typeOf = (name: string | undefined): string | undefined =>
    found.AttributeDefinitions?.find(({ AttributeName }) => AttributeName === name)?.AttributeType;
  const shown = (name: string | undefined): string => (name === undefined ? 'none' : `"${name}"`);
  const [hash, range] = [keyOf('HASH'), keyOf('RANGE')];
  if (hash !== partitionKey) return `its partition key is ${shown(hash)}, not "${partitionKey}"`;
  if (range !== (sortKey ?? undefined))
    return `its sort key is ${shown(range)}, not ${shown(sortKey ?? undefined)}`;
  const odd = [hash, ...(range === undefined ? [] : [range])].find((name) => typeOf(name) !== 'S');
  return odd === undefined ? null : `its key "${odd}" is of type ${typeOf(odd)}, not S, a text`;
}

export function isOn({ TimeToLiveStatus: status }: TimeToLive): boolean {
  return status === 'ENABLED' || status === 'ENABLING';
}
