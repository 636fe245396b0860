/**
 * The client: the class `DynamoDB` of @aws-sdk/client-dynamodb, which has a method per call. A bare `DynamoDBClient` would
 * need the SDK's command classes, and the library imports no client.
 */
import { systemClock } from '../../clock.js';
import { InvalidArgumentError } from '../../protocol/index.js';
import type { AliasParts, Item } from './item.js';

/** Inputs and outputs differ a little between versions of the SDK, so its types are not used. */
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

interface OnItem extends AliasParts {
  readonly TableName: string;
  readonly Key: Item;
}

export interface GetInput extends OnItem {
  readonly ConsistentRead: boolean;
  readonly ProjectionExpression?: string;
}

export interface UpdateInput extends OnItem {
  readonly ConditionExpression: string;
  readonly UpdateExpression?: string;
  readonly ReturnValues?: 'ALL_NEW';
  readonly ReturnValuesOnConditionCheckFailure: 'ALL_OLD';
}

export interface ScanInput extends AliasParts {
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

/** The calls that a store makes, typed. */
export interface Calls {
  get(input: GetInput): Promise<Got>;
  update(input: UpdateInput): Promise<Updated>;
  scan(input: ScanInput): Promise<Page>;
}

/**
 * Without a limit, calls that hang would use up the SDK's connections. The outcome of a call given up is unknown. The
 * limit is this long because a cold Lambda takes a while to get its credentials.
 */
const ANSWER_MS_MAX = 5_000;

/** The calls of one store; `giveUp` ends the pending ones, so that none keeps the process alive. */
export function callsOf(client: DynamodbClient): Calls & { giveUp(): void } {
  const pending = new Set<AbortController>();
  const call = (ask: (options: never) => PromiseLike<unknown>): Promise<unknown> => limited(ask, pending);
  return {
    get: async (input) => (await call((options) => client.getItem(input as never, options))) as Got,
    update: async (input) => (await call((options) => client.updateItem(input as never, options))) as Updated,
    scan: async (input) => (await call((options) => client.scan(input as never, options))) as Page,
    giveUp() {
      const all = [...pending];
      pending.clear();
      for (const controller of all) controller.abort();
    },
  };
}

/** One call that belongs to no store. It keeps the process alive. */
export function callOnce(ask: (options: never) => PromiseLike<unknown>): Promise<unknown> {
  return limited(ask, null);
}

/** `pending`: the calls of a store that is closed when its controllers are removed. */
async function limited(
  ask: (options: never) => PromiseLike<unknown>,
  pending: Set<AbortController> | null,
): Promise<unknown> {
  const controller = new AbortController();
  const timer = systemClock.timer(ANSWER_MS_MAX, () => controller.abort());
  if (pending) timer.keepAlive(false);
  pending?.add(controller);
  try {
    return await ask({ abortSignal: controller.signal } as never);
  } catch (error) {
    if (!controller.signal.aborted) throw error;
    const isClosed = pending !== null && !pending.has(controller);
    const why = isClosed ? 'the store was closed' : `no answer came within ${ANSWER_MS_MAX / 1_000} s`;
    throw new Error(`The call to DynamoDB was given up: ${why}.`, { cause: error });
  } finally {
    timer.cancel();
    pending?.delete(controller);
  }
}

const METHODS = ['getItem', 'updateItem', 'scan', 'describeTable', 'describeTimeToLive'] as const;

export function checkClient(client: unknown): void {
  const some = client as Partial<Record<string, unknown>> | null | undefined;
  const stack = some?.middlewareStack as Partial<Record<string, unknown>> | null | undefined;
  if (METHODS.every((name) => typeof some?.[name] === 'function') && typeof stack?.add === 'function') return;
  throw new InvalidArgumentError(
    'This needs a client of the AWS SDK 3: new DynamoDB({ … }) of @aws-sdk/client-dynamodb. ' +
      'A DynamoDBClient or a DynamoDBDocument does not have the methods: make a DynamoDB with the same settings.',
  );
}
