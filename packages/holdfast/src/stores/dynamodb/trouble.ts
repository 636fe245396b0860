/** What DynamoDB refuses for good, in words. Everything else that fails is unknown, and asked again by the core. */
import { InvalidArgumentError, UnsupportedError } from '../../protocol/index.js';
import { notExecuted } from '../clients/errors.js';
import type { Item } from './values.js';

const NOT_ALLOWED = [
  'AccessDeniedException',
  'UnrecognizedClientException',
  'MissingAuthenticationTokenException',
  'InvalidClientTokenId',
];

export function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : '';
}

/** The item that made the condition fail, where the endpoint sends it. Undefined: the failure is another one. */
export function itemOfFailedCondition(error: unknown): Item | null | undefined {
  if (nameOf(error) !== 'ConditionalCheckFailedException') return undefined;
  const item: unknown = (error as { readonly Item?: unknown }).Item;
  // Some endpoints that do not know of it send an empty one.
  if (typeof item !== 'object' || item === null || Object.keys(item).length === 0) return null;
  return item as Item;
}

/** Whether the SDK sent the call more than once: then an earlier attempt may have been executed. */
export function wasSentAgain(error: unknown): boolean {
  const { $metadata: metadata } = error as { readonly $metadata?: { readonly attempts?: number } };
  return metadata?.attempts !== 1;
}

/** The error to go on with: a refusal in words, or the error as it was, which leaves open what happened. */
export function inWords(error: unknown, table: string, key?: string): unknown {
  const because = error instanceof Error ? error.message : String(error);
  const refused = (message: string): UnsupportedError => new UnsupportedError(message, { key, cause: error });
  const name = nameOf(error);
  if (name === 'ResourceNotFoundException') {
    return refused(
      `There is no table "${table}" in this account and region. Make it with createTable(client, { table: "${table}" }) ` +
        'of holdfast/dynamodb, or with the command holdfast migrate. Mind the region and the endpoint.',
    );
  }
  if (NOT_ALLOWED.includes(name)) {
    return refused(
      `DynamoDB does not let this client use the table "${table}": ${because} Locks need the rights dynamodb:GetItem ` +
        'and dynamodb:UpdateItem on the table, and lists need dynamodb:Scan.',
    );
  }
  if (name === 'ValidationException') return refused(invalid(because, table, key));
  const isUnsent = name === 'CredentialsProviderError' || (isObject(error) && unsent.has(error));
  return (isUnsent ? notExecuted(error) : null) ?? error;
}

/** Errors of calls of which no attempt was sent: the SDK tries again by itself, and its last error tells only of the last. */
const unsent = new WeakSet<object>();

export function noteUnsent(error: unknown): void {
  if (isObject(error)) unsent.add(error);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function invalid(because: string, table: string, key: string | undefined): string {
  if (/item size/i.test(because)) {
    return (
      `The record of "${key}" would be larger than the 400 KB that DynamoDB keeps in an item. Fewer holders or waiters ` +
      'of one key, or shorter owners and metadata, make it smaller. Nothing was changed.'
    );
  }
  if (
    /key element|key schema|required keys|conditions on the keys|mismatch for key|missing the key/i.test(
      because,
    )
  ) {
    return (
      `The table "${table}" has another primary key than these locks: ${because} Name its attributes with partitionKey ` +
      'and sortKey, or use a table of their own. Nothing was changed.'
    );
  }
  return `DynamoDB refused the call for the table "${table}": ${because} Nothing was changed.`;
}

/** By the rules for names of tables. */
export function checkTableName(table: unknown): string {
  // The name, or the ARN of a table in another account.
  if (typeof table === 'string' && /^(arn:[^\s]{10,1000}|[A-Za-z0-9_.-]{3,255})$/.test(table)) return table;
  throw new InvalidArgumentError(
    'The table has to be a name of 3 to 255 letters, digits, dots, dashes or underscores, or the ARN of a table.',
  );
}
