/**
 * Makes DynamoDB refuse a stale token. It completes the input of your own `PutItem` or `UpdateItem`; it opens no
 * connection and imports no client.
 *
 * The item has the highest token that wrote it in an attribute of its own, the fence. The write sets it, and its condition
 * fails if a later holder has set it: one call, so atomic.
 *
 * The same token may write any number of times. An item without a fence accepts any token. Deleting an item deletes its
 * fence: keep the item, and mark it as deleted, where a late write must not bring it back.
 */
import { InvalidArgumentError } from '../protocol/errors.js';
import { checkOptionNames } from '../protocol/option-names.js';
import { checkToken, staleError } from './token.js';

/** Options of `dynamodbGuard`. */
export interface DynamodbGuardOptions {
  /** The attribute that keeps the token. Default `fence`. */
  readonly attribute?: string;
  /** True for the inputs of a document client (`@aws-sdk/lib-dynamodb`), where numbers are plain. Default false. */
  readonly document?: boolean;
}

/** The condition of an input. */
export interface ConditionalInput {
  readonly TableName: string | undefined;
  readonly ConditionExpression?: string | undefined;
  readonly ExpressionAttributeNames?: Readonly<Record<string, string>> | undefined;
  readonly ExpressionAttributeValues?: Readonly<Record<string, unknown>> | undefined;
}

/** The input of a PutItem. */
export interface PutInput extends ConditionalInput {
  readonly Item: Readonly<Record<string, unknown>> | undefined;
}

/** The input of an UpdateItem. */
export interface UpdateInput extends ConditionalInput {
  readonly UpdateExpression?: string | undefined;
}

/** Completes inputs for one token, also those inside a transaction. */
export interface FencedInputs {
  /** A `PutItem` that sets the fence, and writes nothing if a later holder has set it. */
  put<I extends PutInput>(input: I): I;
  /** The same for an `UpdateItem`. */
  update<I extends UpdateInput>(input: I): I;
  /** Only the condition, for a `DeleteItem` or a `ConditionCheck`. */
  compare<I extends ConditionalInput>(input: I): I;
}

/** Adds the token and its condition to writes of DynamoDB. */
export interface DynamodbGuard {
  /** Returns the result of your write; throws `LeaseLostError`, with nothing written, when a later holder has written. */
  write<T>(token: number, write: (fenced: FencedInputs) => Promise<T>): Promise<T>;
}

/** Attribute names are always aliased: a plain one may be a reserved word. */
const NAME = '#holdfastFence';
const VALUE = ':holdfastToken';
const NOT_STALE = `(attribute_not_exists(${NAME}) OR ${NAME} <= ${VALUE})`;
/** A keyword, and no part of `#set`, `:set` or a longer name. */
const SET = /(?<![#:\w.-])SET(?=\s)/i;

/** A guard for items of DynamoDB: a write with a stale token fails. */
export function dynamodbGuard(options: DynamodbGuardOptions = {}): DynamodbGuard {
  checkOptionNames(options, ['attribute', 'document']);
  const { attribute = 'fence', document = false } = options;
  if (typeof attribute !== 'string' || attribute === '') {
    throw new InvalidArgumentError('The fence is the name of an attribute: a string that is not empty.');
  }
  return {
    async write(token, write) {
      checkToken(token);
      const seen = { ownConditions: false };
      try {
        return await write(fencedInputs(attribute, document ? token : { N: String(token) }, seen));
      } catch (cause) {
        if (!isStale(cause, attribute, token, seen.ownConditions)) throw cause;
        throw staleError(token, cause);
      }
    },
  };
}

function fencedInputs(attribute: string, value: unknown, seen: { ownConditions: boolean }): FencedInputs {
  function compare<I extends ConditionalInput>(input: I): I {
    const own = input.ConditionExpression;
    if (own !== undefined) seen.ownConditions = true;
    return {
      ...input,
      ConditionExpression: own === undefined ? NOT_STALE : `${NOT_STALE} AND (${own})`,
      ExpressionAttributeNames: { ...input.ExpressionAttributeNames, [NAME]: attribute },
      ExpressionAttributeValues: { ...input.ExpressionAttributeValues, [VALUE]: value },
      // Distinguishes a later holder from a failed condition of your own.
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    };
  }
  return {
    compare,
    put: (input) => compare({ ...input, Item: { ...input.Item, [attribute]: value } }),
    update: (input) => compare({ ...input, UpdateExpression: stamped(input.UpdateExpression) }),
  };
}

/** An expression may have one SET only. */
function stamped(expression = ''): string {
  const stamp = `SET ${NAME} = ${VALUE}`;
  return SET.test(expression) ? expression.replace(SET, `${stamp},`) : `${stamp} ${expression}`.trimEnd();
}

function isStale(error: unknown, attribute: string, token: number, ownConditions: boolean): boolean {
  if (!(error instanceof Error)) return false;
  if (error.name === 'ConditionalCheckFailedException') {
    const item = fieldOf(error, 'Item');
    // Without the item in the answer, only the guard's condition can have failed, if there is no other.
    return isTold(item) ? fenceOf(item, attribute) > token : !ownConditions;
  }
  if (error.name !== 'TransactionCanceledException') return false;
  const reasons = fieldOf(error, 'CancellationReasons');
  return (
    Array.isArray(reasons) && reasons.some((reason) => fenceOf(fieldOf(reason, 'Item'), attribute) > token)
  );
}

/** Some endpoints send an empty item instead of none. */
function isTold(item: unknown): boolean {
  return typeof item === 'object' && item !== null && Object.keys(item).length > 0;
}

/** NaN for an item without a fence, and for a value that is not a token. */
function fenceOf(item: unknown, attribute: string): number {
  const fence = fieldOf(item, attribute);
  return Number(fieldOf(fence, 'N') ?? fence);
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
