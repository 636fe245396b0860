/** Keys, holds and metadata as clients of the service write them. Names and durations follow the library's rules. */
import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { InvalidArgumentError } from 'holdfast';
import {
  checkKey,
  checkMetadata,
  checkNamespace,
  compareKeys,
  durationMs,
  type HoldId,
  type ListQuery,
  TTL_MS_MIN,
} from 'holdfast/protocol';
import { refusal } from '../http/access.js';
import { withRest } from '../waiting/holds.js';

/** A namespace, a slash, a name. */
export const STORED_KEY_BYTES_MAX = 577;
const METADATA_DEPTH_MAX = 32;
const CONTROL = /\p{Cc}/u;

/**
 * The process in a hold that a client sends, for every route. It has no colon: processes with a colon belong to other
 * clients of the lock (`/v1`, plain SQL, records of other software), and clients that guess them could end their locks.
 */
export const PROCESS = '[A-Za-z0-9_~-]{1,83}';
/** The process's text, then a number: the hold id of the protocol. */
const HOLD_LETTERS_MAX = 100;
const HOLD = new RegExp(`^${PROCESS}\\.[1-9][0-9]{0,15}$`);

/** The namespace of a stored key: the text before the first slash. */
export function namespaceOfKey(key: string): string {
  return key.slice(0, Math.max(key.indexOf('/'), 0));
}

/** A whole key in the form of stores. It comes from a library that has checked the name already. */
export function checkStoredKey(key: string): string {
  const isUsable = key.isWellFormed() && !CONTROL.test(key) && Buffer.byteLength(key) <= STORED_KEY_BYTES_MAX;
  if (key !== '' && isUsable) return key;
  throw new InvalidArgumentError(
    `The key ${JSON.stringify(key.slice(0, 80))} is invalid: use valid Unicode without control characters, 1 to ${STORED_KEY_BYTES_MAX} bytes.`,
  );
}

export function ttlOf(value: number | string, maxMs: number): number {
  return durationMs(value, 'ttl', TTL_MS_MIN, maxMs);
}

export function metadataOf(metadata: object): string {
  // Checked first: JSON.stringify of deeply nested data overflows the stack.
  if (isShallow(metadata, METADATA_DEPTH_MAX)) return checkMetadata(metadata);
  throw new InvalidArgumentError(`metadata is nested deeper than ${METADATA_DEPTH_MAX} levels.`);
}

/** Metadata in a command of the store protocol: JSON as text, which is stored as it is. */
export function checkMetadataText(text: string): void {
  let metadata: unknown;
  try {
    metadata = JSON.parse(text);
  } catch (cause) {
    throw new InvalidArgumentError('metadata is not JSON: send an object as JSON text, or null.', { cause });
  }
  checkMetadata(metadata);
}

function isShallow(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return levels > 0 && Object.values(value).every((member) => isShallow(member, levels - 1));
}

export function holdOf(text: string): HoldId {
  const number = Number(text.slice(text.lastIndexOf('.') + 1));
  if (text.length <= HOLD_LETTERS_MAX && HOLD.test(text) && Number.isSafeInteger(number)) {
    return { process: text.slice(0, text.lastIndexOf('.')), number };
  }
  // The text is not shown: a hold is a secret.
  throw new InvalidArgumentError(
    `The hold is invalid: use letters, digits, _ or -, then a dot and a whole number above 0, at most ${HOLD_LETTERS_MAX} characters.`,
  );
}

/** The same hold for the same principal, key and Idempotency-Key, in every process of the service. */
export function idempotentHold(
  principal: string,
  key: string,
  idempotencyKey: string,
  minHoldMs: number,
): HoldId {
  const digest = createHash('sha256')
    .update(JSON.stringify([principal, key, idempotencyKey]))
    .digest('base64url');
  return { process: withRest(digest, minHoldMs), number: 1 };
}

const PAGE_LENGTH_MAX = 1_000;

/** The `limit` of a list. */
export function pageLengthOf(limit = '100'): number {
  return Math.min(Number(limit), PAGE_LENGTH_MAX);
}

export const LOCK_PATH = '/v2/locks/:namespace/:name';

/** The key in the path, noted for the log. */
export function keyIn(request: FastifyRequest): string {
  const { namespace, name } = request.params as { readonly namespace: string; readonly name: string };
  const key = `${checkNamespace(namespace)}/${checkKey(name)}`;
  request.note.key = key;
  return key;
}

/** Throws for a namespace without a right to read it: the answer "nothing is held" could be wrong. */
export function refuseForeign(request: FastifyRequest, namespace: string): void {
  const problem = refusal(request, 'read', namespace);
  if (problem) throw problem;
}

/** The start of all keys of this namespace, if the principal may read it. Without a namespace, the start of all keys. */
export function startOfKeys(request: FastifyRequest, namespace: string | undefined): string {
  if (namespace === undefined) return '';
  refuseForeign(request, checkNamespace(namespace));
  return `${namespace}/`;
}

/** The part of the allowed prefixes that starts with `asked`, in the same order. */
export function narrowed(allowed: readonly string[], asked: string): readonly string[] {
  return allowed.flatMap((prefix) => {
    if (prefix.startsWith(asked)) return prefix;
    return asked.startsWith(prefix) ? asked : [];
  });
}

/** List queries for all keys after this one, prefix by prefix. The key itself need not exist. */
export function queriesAfter(prefixes: readonly string[], after: string | undefined): readonly ListQuery[] {
  if (!after) return prefixes.map((prefix) => ({ prefix }));
  return prefixes.flatMap((prefix) => {
    if (after.startsWith(prefix)) return { prefix, after };
    return compareKeys(prefix, after) > 0 ? { prefix } : [];
  });
}
