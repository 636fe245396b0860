/** The description of a table, and whether it can store locks. */
import type { Finding } from '../../protocol/index.js';
import { callOnce, type DynamodbClient } from './client.js';
import { explainedError, nameOf } from './errors.js';
import type { Layout, TableShape } from './layout.js';
import { NATIVE } from './native-layout.js';

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

/** Null where the table does not exist. */
export async function describe(client: DynamodbClient, table: string): Promise<Table | null> {
  try {
    const answer = await callOnce((options) => client.describeTable({ TableName: table } as never, options));
    return (answer as { readonly Table?: Table }).Table ?? null;
  } catch (error) {
    if (nameOf(error) === 'ResourceNotFoundException') return null;
    throw explainedError(error, table);
  }
}

/** The attribute of the table's time to live; null while it is off. */
export async function timeToLiveOf(client: DynamodbClient, table: string): Promise<string | null> {
  const answer = await callOnce((options) =>
    client.describeTimeToLive({ TableName: table } as never, options),
  );
  const { TimeToLiveDescription: found } = answer as {
    readonly TimeToLiveDescription?: { readonly TimeToLiveStatus?: string; readonly AttributeName?: string };
  };
  const isOn = found?.TimeToLiveStatus === 'ENABLED' || found?.TimeToLiveStatus === 'ENABLING';
  return isOn ? (found.AttributeName ?? null) : null;
}

/** What the table's time to live means for locks. `found`: its attribute, null while it is off. */
export function timeToLiveFinding(found: string | null, layout: Layout): Finding {
  const attribute = layout.table.ttlAttribute;
  if (attribute === null) return { level: 'note', text: 'This layout has no time to live: items stay.' };
  if (found === null) {
    return {
      level: 'warning',
      text:
        'Time to live is off: the items of locks stay for ever. `holdfast migrate --time-to-live` turns it on, and so does ' +
        'createTable with timeToLive: true. DynamoDB then deletes every item of the table, also of an application, ' +
        `whose "${attribute}" has passed.`,
    };
  }
  if (found === attribute) {
    return {
      level: 'good',
      text: `Unused items are deleted, by the attribute "${attribute}".`,
    };
  }
  return {
    level: 'warning',
    text:
      `Time to live goes by the attribute "${found}", and these locks write "${attribute}": their items stay for ever. ` +
      timeToLiveAdvice(found, layout),
  };
}

/** For a table whose time to live uses another attribute than the locks write. */
export function timeToLiveAdvice(found: string, layout: Layout): string {
  if (layout.name === NATIVE) return `Name it with ttlAttribute: "${found}", here and for the store.`;
  return (
    `The layout ${layout.name} always writes "${layout.table.ttlAttribute}": delete unused items of ` +
    'locks by other means.'
  );
}

/** What is wrong with the primary key; null when it fits. */
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
