/** Guards: they make a resource refuse a stale token. */
export {
  type ConditionalInput,
  type DynamodbGuard,
  type DynamodbGuardOptions,
  dynamodbGuard,
  type FencedInputs,
  type PutInput,
  type UpdateInput,
} from './dynamodb.js';
export { type Evaluate, type GuardedWrite, type RedisGuard, redisGuard } from './redis.js';
export { type SqlDialect, type SqlGuard, type SqlGuardOptions, type SqlStatement, sqlGuard } from './sql.js';
