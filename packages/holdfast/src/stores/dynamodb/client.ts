/**
 * The client as far as it is used: the class `DynamoDB` of @aws-sdk/client-dynamodb, which has a method a call. A bare
 * `DynamoDBClient` needs the SDK's command classes, and the library imports no client.
 */
import { InvalidArgumentError } from '../../protocol/index.js';
import type { Parts } from './expressions.js';
import type { Item } from './values.js';

/** Inputs and outputs differ a little from version to version of the SDK, so its types are not looked at. */
export interface DynamodbClient {
  getItem(input: never, options?: never): PromiseLike<unknown>;
  updateItem(input: never, options?: never): PromiseLike<unknown>;
  deleteItem(input: never, options?: never): PromiseLike<unknown>;
  scan(input: never, options?: never): PromiseLike<unknown>;
  describeTable(input: never): PromiseLike<unknown>;
  describeTimeToLive(input: never): PromiseLike<unknown>;
  readonly middlewareStack: { add(middleware: never, options: never): void };
}

/** For `createTable`. */
export interface DynamodbTableClient extends DynamodbClient {
  createTable(input: never): PromiseLike<unknown>;
  updateTimeToLive(input: never): PromiseLike<unknown>;
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

/** What a store asks of it, typed. */
export interface Calls {
  get(input: Read): Promise<{ readonly Item?: Item }>;
  update(input: Write): Promise<{ readonly Attributes?: Item }>;
  delete(input: Write): Promise<unknown>;
  scan(input: Look): Promise<Page>;
}

/** Calls that are under way when `signal` aborts are given up, so that none keeps the process alive. */
export function callsOf(client: DynamodbClient, signal: AbortSignal): Calls {
  const options = { abortSignal: signal } as never;
  return {
    get: async (input) => (await client.getItem(input as never, options)) as { readonly Item?: Item },
    update: async (input) =>
      (await client.updateItem(input as never, options)) as { readonly Attributes?: Item },
    delete: async (input) => await client.deleteItem(input as never, options),
    scan: async (input) => (await client.scan(input as never, options)) as Page,
  };
}

const USED = ['getItem', 'updateItem', 'deleteItem', 'scan', 'describeTable', 'describeTimeToLive'] as const;

export function checkClient(client: unknown): void {
  const some = client as Partial<Record<string, unknown>> | null | undefined;
  const stack = some?.middlewareStack as Partial<Record<string, unknown>> | null | undefined;
  if (USED.every((name) => typeof some?.[name] === 'function') && typeof stack?.add === 'function') return;
  throw new InvalidArgumentError(
    'This needs a client of the AWS SDK 3: new DynamoDB({ … }) of @aws-sdk/client-dynamodb. ' +
      'A DynamoDBClient or a DynamoDBDocument does not have the methods: make a DynamoDB with the same settings.',
  );
}
