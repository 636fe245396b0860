/** Locks in a DynamoDB table, shared by everybody who may write to it. The client is the caller's. See store.ts. */
import type { Store } from '../../protocol/index.js';
import { checkClient, type DynamodbClient } from './client.js';
import { type DynamodbStoreOptions, placeOf } from './options.js';
import { storeOn } from './store.js';

export type { DynamodbClient, DynamodbTableClient } from './client.js';
export { type CreatedTable, type CreateTableOptions, createTable } from './create-table.js';
export type { LayoutName } from './layouts/index.js';
export type { DynamodbStoreOptions, DynamodbTableOptions } from './options.js';

/**
 * The client is `new DynamoDB({ … })` of @aws-sdk/client-dynamodb; it is used as it is and never closed. The table has
 * to be there: `createTable` makes it, once.
 */
export function dynamodbStore(client: DynamodbClient, options: DynamodbStoreOptions = {}): Store {
  checkClient(client);
  return storeOn(client, placeOf(options));
}
