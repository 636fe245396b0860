/**
 * The table: its description, whether it can store locks, and its creation, which no store does by itself.
 *
 * An existing table is not changed. Its time to live is turned on only by the option: DynamoDB then deletes every item of
 * the table whose attribute has passed, also those of an application.
 */
import { systemClock } from '../../clock.js';
import { type Finding, InvalidArgumentError, StoreError, UnsupportedError } from '../../protocol/index.js';
import { good, note, warning } from '../clients/findings.js';
import {
  CallLimit,
  type DynamodbClient,
  type DynamodbCommandClient,
  type DynamodbTableClient,
  methodsOf,
} from './client.js';
import { explainedError, nameOf } from './errors.js';
import type { Layout, TableShape } from './layout.js';
import { NATIVE } from './native-layout.js';
import { type DynamodbStoreOptions, type Place, placeOf } from './options.js';

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

/** For calls that belong to no store. */
const limit = new CallLimit();

/** A call for the table; its errors are explained. */
async function callFor<C extends DynamodbClient>(
  client: C,
  table: string,
  name: Exclude<keyof C, 'middlewareStack'>,
  input: object = {},
): Promise<unknown> {
  try {
    const method = client[name] as (input: object, options: never) => PromiseLike<unknown>;
    return await limit.call((options) => method.call(client, { TableName: table, ...input }, options));
  } catch (error) {
    throw explainedError(error, table);
  }
}

/** Null where the table does not exist. */
export async function describe(client: DynamodbClient, table: string): Promise<Table | null> {
  try {
    const answer = await callFor(client, table, 'describeTable');
    return (answer as { readonly Table?: Table }).Table ?? null;
  } catch (error) {
    if (error instanceof Error && nameOf(error.cause) === 'ResourceNotFoundException') return null;
    throw error;
  }
}

/** The attribute of the table's time to live; null while it is off. */
export async function timeToLiveOf(client: DynamodbClient, table: string): Promise<string | null> {
  const { TimeToLiveDescription: found } = (await callFor(client, table, 'describeTimeToLive')) as {
    readonly TimeToLiveDescription?: { readonly TimeToLiveStatus?: string; readonly AttributeName?: string };
  };
  const isOn = found?.TimeToLiveStatus === 'ENABLED' || found?.TimeToLiveStatus === 'ENABLING';
  return isOn ? (found.AttributeName ?? null) : null;
}

/** The input of a `CreateTable`, and the properties of the table in a CloudFormation template. */
export function definitionOf(TableName: string, { partitionKey, sortKey }: TableShape): object {
  const keys = [partitionKey, ...(sortKey === null ? [] : [sortKey])];
  return {
    TableName,
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: keys.map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
    KeySchema: keys.map((AttributeName, at) => ({ AttributeName, KeyType: at === 0 ? 'HASH' : 'RANGE' })),
  };
}

/** What the table's time to live means for locks. `found`: its attribute, null while it is off. */
export function timeToLiveFinding(found: string | null, layout: Layout): Finding {
  const attribute = layout.table.ttlAttribute;
  if (attribute === null) return note('This layout has no time to live: items stay.');
  if (found === attribute) return good(`Unused items are deleted, by the attribute "${attribute}".`);
  if (found === null) {
    return warning(
      'Time to live is off: the items of locks stay for ever. `holdfast migrate --time-to-live` turns it on, and so does ' +
        'createTable with timeToLive: true. DynamoDB then deletes every item of the table, also of an application, ' +
        `whose "${attribute}" has passed.`,
    );
  }
  return warning(
    `Time to live goes by the attribute "${found}", and these locks write "${attribute}": their items stay for ever. ` +
      timeToLiveAdvice(found, layout),
  );
}

/** For a table whose time to live uses another attribute than the locks write. */
function timeToLiveAdvice(found: string, layout: Layout): string {
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

/** Options of `createTable`. */
export interface CreateTableOptions extends DynamodbStoreOptions {
  /**
   * Turn on the time to live of an existing table too. DynamoDB then deletes every item of it whose `ttlAttribute` has
   * passed, also those of an application. Default false: an existing table is not changed.
   */
  readonly timeToLive?: boolean;
}

/** The result of `createTable`. */
export interface CreatedTable {
  readonly table: string;
  /** False where it existed. */
  readonly created: boolean;
  /** The attribute of the table's time to live; null while it is off. */
  readonly timeToLive: string | null;
  /** Whether this call turned the time to live on. */
  readonly turnedOn: boolean;
}

const READY_MS_MAX = 120_000;
const CHECK_AGAIN_MS = 500;

/**
 * Creates the table with on-demand billing, waits until it is ready, and turns its time to live on. An existing table is
 * only checked: one with another primary key is refused. It may be called by many at once, and again.
 */
export async function createTable(
  given: DynamodbTableClient | DynamodbCommandClient,
  options: CreateTableOptions = {},
): Promise<CreatedTable> {
  const client = methodsOf(given);
  const { timeToLive = false, ...where } = options;
  if (typeof timeToLive !== 'boolean') {
    throw new InvalidArgumentError('timeToLive has to be true or false.');
  }
  const place = placeOf(where);
  const { table, layout } = place;
  const created = (await describe(client, table)) === null && (await create(client, place));
  const wrong = wrongKey(await untilActive(client, table), layout.table);
  if (wrong !== null) {
    throw new UnsupportedError(
      `The table "${table}" cannot store these locks: ${wrong}. Name its attributes with partitionKey and sortKey, ` +
        'or choose another table. Nothing was changed.',
    );
  }
  const found = await timeToLiveOf(client, table);
  if (!created && !timeToLive) return { table, created, timeToLive: found, turnedOn: false };
  return { table, created, ...(await turnOn(client, place, found)) };
}

/** False when another process was first. */
async function create(client: DynamodbTableClient, { table, layout }: Place): Promise<boolean> {
  try {
    await callFor(client, table, 'createTable', definitionOf(table, layout.table));
    return true;
  } catch (error) {
    if (nameOf(error) === 'ResourceInUseException') return false;
    throw error;
  }
}

async function untilActive(client: DynamodbTableClient, table: string): Promise<Table> {
  const since = systemClock.monotonicMs();
  for (;;) {
    const found = await describe(client, table);
    if (found && (found.TableStatus === 'ACTIVE' || found.TableStatus === 'UPDATING')) return found;
    if (systemClock.monotonicMs() - since > READY_MS_MAX) {
      throw new StoreError(
        `The table "${table}" is not ready after ${READY_MS_MAX / 1_000} s; it is ${found?.TableStatus ?? 'not there'}. ` +
          'Run this again later.',
        { operation: 'createTable' },
      );
    }
    await new Promise<void>((resolve) => {
      systemClock.timer(CHECK_AGAIN_MS, resolve);
    });
  }
}

async function turnOn(
  client: DynamodbTableClient,
  { table, layout }: Place,
  found: string | null,
): Promise<Pick<CreatedTable, 'timeToLive' | 'turnedOn'>> {
  const attribute = layout.table.ttlAttribute;
  if (attribute === null || found === attribute) return { timeToLive: found, turnedOn: false };
  if (found !== null) {
    throw new UnsupportedError(
      `Time to live of the table "${table}" cannot be turned on for "${attribute}": it uses "${found}", and a table has ` +
        `one such attribute. ${timeToLiveAdvice(found, layout)} Or leave timeToLive out. Nothing was changed.`,
    );
  }
  const TimeToLiveSpecification = { Enabled: true, AttributeName: attribute };
  try {
    await callFor(client, table, 'updateTimeToLive', { TimeToLiveSpecification });
    return { timeToLive: attribute, turnedOn: true };
  } catch (error) {
    // Another process may have turned it on since.
    if ((await timeToLiveOf(client, table)) === attribute) return { timeToLive: attribute, turnedOn: false };
    throw error;
  }
}
