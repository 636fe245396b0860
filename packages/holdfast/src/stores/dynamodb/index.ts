/** The public names of the DynamoDB store. See store.ts. */
export type { DynamodbClient, DynamodbTableClient } from './client.js';
export { type CreatedTable, type CreateTableOptions, createTable } from './create-table.js';
export type { LayoutName } from './layouts/index.js';
export type { DynamodbStoreOptions, DynamodbTableOptions } from './options.js';
export { dynamodbStore } from './store.js';
