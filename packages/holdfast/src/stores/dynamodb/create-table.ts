/**
 * Creates the table, or checks an existing one. Only on request: no store does it by itself.
 *
 * An existing table is not changed. Its time to live is turned on only by the option: DynamoDB then deletes every item of
 * the table whose attribute has passed, also those of an application.
 */
import { systemClock } from '../../clock.js';
import { InvalidArgumentError, StoreError, UnsupportedError } from '../../protocol/index.js';
import { callOnce, checkClient, type DynamodbTableClient } from './client.js';
import { explainedError, nameOf } from './errors.js';
import type { TableShape } from './layout.js';
import { type DynamodbStoreOptions, type Place, placeOf } from './options.js';
import { describe, type Table, timeToLiveAdvice, timeToLiveOf, wrongKey } from './table.js';

export interface CreateTableOptions extends DynamodbStoreOptions {
  /**
   * Turn on the time to live of an existing table too. DynamoDB then deletes every item of it whose `ttlAttribute` has
   * passed, also those of an application. Default false: an existing table is not changed.
   */
  readonly timeToLive?: boolean;
}

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
  client: DynamodbTableClient,
  options: CreateTableOptions = {},
): Promise<CreatedTable> {
  checkClient(client);
  const { timeToLive = false, ...where } = options;
  if (typeof timeToLive !== 'boolean') {
    throw new InvalidArgumentError('timeToLive has to be true or false.');
  }
  const place = placeOf(where);
  const { table, layout } = place;
  const created = (await describe(client, table)) === null && (await create(client, table, layout.table));
  const wrong = wrongKey(await untilActive(client, table), layout.table);
  if (wrong !== null) {
    throw new UnsupportedError(
      `The table "${table}" cannot store these locks: ${wrong}. Name its attributes with partitionKey and sortKey, ` +
        'or choose another table. Nothing was changed.',
    );
  }
  const found = await timeToLiveIn(client, table);
  if (!created && !timeToLive) return { table, created, timeToLive: found, turnedOn: false };
  return { table, created, ...(await turnOn(client, place, found)) };
}

/** False when another process was first. */
async function create(client: DynamodbTableClient, table: string, shape: TableShape): Promise<boolean> {
  const keys = [shape.partitionKey, ...(shape.sortKey === null ? [] : [shape.sortKey])];
  const input = {
    TableName: table,
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: keys.map((name) => ({ AttributeName: name, AttributeType: 'S' })),
    KeySchema: keys.map((name, index) => ({ AttributeName: name, KeyType: index === 0 ? 'HASH' : 'RANGE' })),
  };
  try {
    await callOnce((options) => client.createTable(input as never, options));
    return true;
  } catch (error) {
    if (nameOf(error) === 'ResourceInUseException') return false;
    throw explainedError(error, table);
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
    await callOnce((options) =>
      client.updateTimeToLive({ TableName: table, TimeToLiveSpecification } as never, options),
    );
    return { timeToLive: attribute, turnedOn: true };
  } catch (error) {
    // Another process may have turned it on since.
    if ((await timeToLiveIn(client, table)) === attribute) return { timeToLive: attribute, turnedOn: false };
    throw explainedError(error, table);
  }
}

async function timeToLiveIn(client: DynamodbTableClient, table: string): Promise<string | null> {
  try {
    return await timeToLiveOf(client, table);
  } catch (error) {
    throw explainedError(error, table);
  }
}
