/** Refusals of DynamoDB, explained. The outcome of every other failure is unknown, and the core asks again. */
import { UnsupportedError } from '../../protocol/index.js';
import { messageOf, notExecuted } from '../clients/errors.js';
import type { Item } from './item.js';

const NOT_ALLOWED = [
  'AccessDeniedException',
  'UnrecognizedClientException',
  'MissingAuthenticationTokenException',
  'InvalidClientTokenId',
];

/** Messages about a table with another primary key. */
const WRONG_KEY =
  /key element|key schema|required keys|conditions on the keys|mismatch for key|missing the key/i;

export function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : '';
}

/** The item that made the condition fail; null where the endpoint does not return it. Undefined for another failure. */
export function itemOfFailedCondition(error: unknown): Item | null | undefined {
  if (nameOf(error) !== 'ConditionalCheckFailedException') return undefined;
  const { Item: item } = error as { readonly Item?: Item };
  // Some endpoints return an empty item instead.
  return item && Object.keys(item).length > 0 ? item : null;
}

/** Whether the SDK sent the call more than once: then an earlier attempt may have been executed. */
export function wasSentAgain(error: unknown): boolean {
  const { $metadata: metadata } = error as { readonly $metadata?: { readonly attempts?: number } };
  return metadata?.attempts !== 1;
}

/** An explained refusal, or the error as it is, whose outcome is unknown. */
export function explainedError(error: unknown, table: string, key?: string): unknown {
  const because = messageOf(error);
  const refused = (message: string): UnsupportedError => new UnsupportedError(message, { key, cause: error });
  const name = nameOf(error);
  if (name === 'ResourceNotFoundException') {
    return refused(
      `There is no table "${table}" in this account and region. Create it with createTable(client, { table: "${table}" }) ` +
        'of holdfast/dynamodb, or with the command holdfast migrate. Check the region and the endpoint.',
    );
  }
  if (NOT_ALLOWED.includes(name)) {
    return refused(
      `DynamoDB does not let this client use the table "${table}": ${because} Locks need the rights dynamodb:GetItem ` +
        'and dynamodb:UpdateItem on the table, and lists need dynamodb:Scan.',
    );
  }
  if (name === 'ValidationException') return refused(invalid(because, table, key));
  const isUnsent = name === 'CredentialsProviderError' || (error instanceof Error && unsent.has(error));
  return (isUnsent ? notExecuted(error) : null) ?? error;
}

/** Errors of calls without any sent attempt. The SDK retries by itself, and its error is that of the last attempt only. */
const unsent = new WeakSet<object>();

export function noteUnsent(error: unknown): void {
  if (error instanceof Error) unsent.add(error);
}

function invalid(because: string, table: string, key: string | undefined): string {
  if (/item size/i.test(because)) {
    return (
      `The record of "${key}" would be larger than the 400 KB of a DynamoDB item. Fewer holders or waiters ` +
      'per key, or shorter owners and metadata, make it smaller. Nothing was changed.'
    );
  }
  if (WRONG_KEY.test(because)) {
    return (
      `The table "${table}" has another primary key than these locks: ${because} Name its attributes with partitionKey ` +
      'and sortKey, or use a separate table. Nothing was changed.'
    );
  }
  return `DynamoDB refused the call for the table "${table}": ${because} Nothing was changed.`;
}
