/** The public names of the DynamoDB store. See store.ts. */
export type { DynamodbClient, DynamodbCommandClient, DynamodbTableClient } from './client.js';
export type { DynamodbLayout } from './layout.js';
export type { DynamodbStoreOptions, DynamodbTableOptions } from './options.js';
export { dynamodbStore } from './store.js';
export { type CreatedTable, type CreateTableOptions, createTable } from './table.js';
