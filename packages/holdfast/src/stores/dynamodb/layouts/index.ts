/** Layouts of other software in DynamoDB, for the option `layout` of `dynamodbStore` and `createTable`. */
export type { DynamodbLayout } from '../layout.js';
export { dynamodbLockGo } from './dynamodb-lock-go.js';
export { lockServiceCentral } from './lock-service-central.js';
export { singleTable } from './single-table.js';
