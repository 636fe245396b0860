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
export {
  type FenceStore,
  type MemoryFencesOptions,
  memoryFences,
  type RedisFencesOptions,
  redisFences,
  sqlFences,
} from './fence-stores.js';
export {
  type CheckedRequest,
  type FencingCheck,
  type FencingCheckOptions,
  fencingCheck,
} from './http-check.js';
export {
  type Fencing,
  type FencingLease,
  fencedFetch,
  fencingHeaders,
  fencingOf,
  type RequestHeaders,
} from './http-header.js';
export { type Evaluate, type GuardedWrite, type RedisGuard, redisGuard } from './redis.js';
export { NoRowChangedError } from './row-check.js';
export { type SqlDialect, type SqlGuard, type SqlGuardOptions, type SqlStatement, sqlGuard } from './sql.js';
