/**
 * The client as far as it is used: the class `DynamoDB` of @aws-sdk/client-dynamodb, which has a method a call. A bare
 * `DynamoDBClient` needs the SDK's command classes, and the library imports no client.
 */
import { systemClock } from '../../clock.js';
import { InvalidArgumentError } from '../../protocol/index.js';
import type { Parts } from './expressions.js';
import type { Item } from './values.js';

/** Inputs and outputs differ a little from version to version of the SDK, so its types are not looked at. */
export interface DynamodbClient {
  getItem(input: never, options?: never): PromiseLike<unknown>;
  updateItem(input: never, options?: never): PromiseLike<unknown>;
  scan(input: never, options?: never): PromiseLike<unknown>;
  describeTable(input: never, options?: never): PromiseLike<unknown>;
  describeTimeToLive(input: never, options?: never): PromiseLike<unknown>;
  readonly middlewareStack: { add(middleware: never, options: never): void };
}

/** For `createTable`. */
export interface DynamodbTableClient extends DynamodbClient {
  createTable(input: never, options?: never): PromiseLike<unknown>;
  updateTimeToLive(input: never, options?: never): PromiseLike<unknown>;
}

interface OnItem extends Parts {
  readonly TableName: string;
  readonly Key: Item;
}

export interface Read extends OnItem {
  readonly ConsistentRead: boolean;
  readonly ProjectionExpression?: string;
}

export interface Write extends OnItem {
  readonly ConditionExpression: string;
  readonly UpdateExpression?: string;
  readonly ReturnValues?: 'ALL_NEW';
  readonly ReturnValuesOnConditionCheckFailure: 'ALL_OLD';
}

export interface Look extends Parts {
  readonly TableName: string;
  readonly ConsistentRead: boolean;
  readonly FilterExpression?: string;
  readonly ExclusiveStartKey?: Item;
}

export interface Page {
  readonly Items?: readonly Item[];
  readonly LastEvaluatedKey?: Item;
}

interface Got {
  readonly Item?: Item;
}

interface Updated {
  readonly Attributes?: Item;
}

/** What a store asks of it, typed. */
export interface Calls {
  get(input: Read): Promise<Got>;
  update(input: Write): Promise<Updated>;
  scan(input: Look): Promise<Page>;
}

/**
 * A call that hangs for ever would keep its connection, and the SDK has only so many: after a while nothing went through
 * any more. Given up, it is unknown like any other that was not answered. A cold Lambda's credentials take a while.
 */
const ANSWER_MS_MAX = 5_000;

/** The calls of one store; `giveUp` ends those that are under way, so that none keeps the process alive. */
export function callsOf(client: DynamodbClient): Calls & { giveUp(): void } {
  const underWay = new Set<AbortController>();

  async function call(ask: (options: never) => PromiseLike<unknown>): Promise<unknown> {
    const ending = new AbortController();
    const timer = systemClock.timer(ANSWER_MS_MAX, () => ending.abort());
    timer.keepAlive(false);
    underWay.add(ending);
    try {
      return await ask({ abortSignal: ending.signal } as never);
    } catch (error) {
      if (!ending.signal.aborted) throw error;
      const why = underWay.has(ending) ? `no answer came within ${ANSWER_MS_MAX / 1_000} s` : 'it was closed';
      throw new Error(`The call to DynamoDB was given up: ${why}.`, { cause: error });
    } finally {
      timer.cancel();
      underWay.delete(ending);
    }
  }

  return {
    get: async (input) => (await call((options) => client.getItem(input as never, options))) as Got,
    update: async (input) => (await call((options) => client.updateItem(input as never, options))) as Updated,
    scan: async (input) => (await call((options) => client.scan(input as never, options))) as Page,
    giveUp() {
      const all = [...underWay];
      underWay.clear();
      for (const ending of all) ending.abort();
    },
  };
}

/** One call that belongs to no store, given up like the others. */
export async function callOnce(ask: (options: never) => PromiseLike<unknown>): Promise<unknown> {
  const ending = new AbortController();
  const timer = systemClock.timer(ANSWER_MS_MAX, () => ending.abort());
  try {
    return await ask({ abortSignal: ending.signal } as never);
  } catch (error) {
    if (!ending.signal.aborted) throw error;
    const why = `no answer came within ${ANSWER_MS_MAX / 1_000} s`;
    throw new Error(`The call to DynamoDB was given up: ${why}.`, { cause: error });
  } finally {
    timer.cancel();
  }
}

const USED = ['getItem', 'updateItem', 'scan', 'describeTable', 'describeTimeToLive'] as const;

export function checkClient(client: unknown): void {
  const some = client as Partial<Record<string, unknown>> | null | undefined;
  const stack = some?.middlewareStack as Partial<Record<string, unknown>> | null | undefined;
  if (USED.every((name) => typeof some?.[name] === 'function') && typeof stack?.add === 'function') return;
  throw new InvalidArgumentError(
    'This needs a client of the AWS SDK 3: new DynamoDB({ … }) of @aws-sdk/client-dynamodb. ' +
      'A DynamoDBClient or a DynamoDBDocument does not have the methods: make a DynamoDB with the same settings.',
  );
}
