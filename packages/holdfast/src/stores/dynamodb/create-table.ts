/** Makes the table, or looks whether the one that is there will do. Only when asked: no store does it by itself. */
import { systemClock } from '../../clock.js';
import { StoreError, UnsupportedError } from '../../protocol/index.js';
import { callOnce, checkClient, type DynamodbTableClient } from './client.js';
import type { TableShape } from './layout.js';
import { type DynamodbStoreOptions, placeOf } from './options.js';
import { describe, isOn, type Table, timeToLiveOf, wrongKey } from './table.js';
import { inWords, nameOf } from './trouble.js';

export interface CreatedTable {
  readonly table: string;
  /** False where it was there already. */
  readonly created: boolean;
  /** Whether the table's time to live was turned on now. */
  readonly turnedOn: boolean;
}

const READY_MS_MAX = 120_000;
const LOOK_AGAIN_MS = 500;

/**
 * Makes the table with on-demand billing, waits until it can be used, and turns its time to live on. Many may call it
 * at once, and again: a table that is as it has to be is left as it is. One that is otherwise is refused, in words.
 */
export async function createTable(
  client: DynamodbTableClient,
  options: DynamodbStoreOptions = {},
): Promise<CreatedTable> {
  checkClient(client);
  const { table, layout } = placeOf(options);
  const created = (await describe(client, table)) === null && (await create(client, table, layout.table));
  const wrong = wrongKey(await untilActive(client, table), layout.table);
  if (wrong !== null) {
    throw new UnsupportedError(
      `The table "${table}" cannot hold these locks: ${wrong}. Name its attributes with partitionKey and sortKey, ` +
        'or choose another table. Nothing was changed.',
    );
  }
  return { table, created, turnedOn: await turnOn(client, table, layout.table.ttlAttribute) };
}

/** False when somebody else was first. */
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
    throw inWords(error, table);
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
      systemClock.timer(LOOK_AGAIN_MS, resolve);
    });
  }
}

async function turnOn(
  client: DynamodbTableClient,
  table: string,
  attribute: string | null,
): Promise<boolean> {
  if (attribute === null || isRight(await timeToLive(client, table), table, attribute)) return false;
  const TimeToLiveSpecification = { Enabled: true, AttributeName: attribute };
  try {
    await callOnce((options) =>
      client.updateTimeToLive({ TableName: table, TimeToLiveSpecification } as never, options),
    );
    return true;
  } catch (error) {
    // Somebody else may have done it since.
    if (isRight(await timeToLive(client, table), table, attribute)) return false;
    throw inWords(error, table);
  }
}

async function timeToLive(client: DynamodbTableClient, table: string) {
  try {
    return await timeToLiveOf(client, table);
  } catch (error) {
    throw inWords(error, table);
  }
}

function isRight(found: Awaited<ReturnType<typeof timeToLive>>, table: string, attribute: string): boolean {
  if (!isOn(found)) return false;
  if (found.AttributeName === attribute) return true;
  throw new UnsupportedError(
    `The time to live of the table "${table}" goes by "${found.AttributeName}", and these locks write "${attribute}". ` +
      `Say ttlAttribute: "${found.AttributeName}", or choose another table.`,
  );
}
