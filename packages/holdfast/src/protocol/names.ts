/**
 * Rules for names and texts of users: namespaces, keys, owners, metadata, reasons. Checked once, before anything is sent
 * (F17). Two spellings of one letter are one name: text is compared in Unicode's normal form C.
 */
import { InvalidArgumentError } from './errors.js';

export const KEY_BYTES_MAX = 512;
export const OWNER_BYTES_MAX = 256;
export const METADATA_BYTES_MAX = 4_096;
const REASON_BYTES_MAX = 256;
const NAMESPACE = /^[A-Za-z0-9_.-]{1,64}$/;
const CONTROL = /\p{Cc}/u;
const PLAIN = /^[ -~]+$/;
const PLAIN_LENGTH_MAX = 128;
const SPACE = 0x20;

/**
 * Whether the text, from this place on, needs no further check, like most names. The text before has to be plain, too.
 * Reading one character flattens a joined string, on which regular expressions and maps are slow.
 */
export const isPlainText = (text: string, from = 0): boolean =>
  text.charCodeAt(from) >= SPACE && text.length <= from + PLAIN_LENGTH_MAX && PLAIN.test(text);

/** Returns the namespace, or throws `InvalidArgumentError`. */
export function checkNamespace(namespace: unknown): string {
  if (typeof namespace === 'string' && NAMESPACE.test(namespace)) return namespace;
  throw new InvalidArgumentError(
    `The namespace ${show(namespace)} is invalid: use 1 to 64 letters, digits, dots, dashes or underscores.`,
  );
}

/** Returns the key in its normal form, or throws `InvalidArgumentError`. */
export function checkKey(key: unknown): string {
  return checkText(key, 'key', KEY_BYTES_MAX);
}

/** A prefix may be empty. */
export function checkPrefix(prefix: unknown): string {
  return prefix === undefined || prefix === '' ? '' : checkText(prefix, 'prefix', KEY_BYTES_MAX);
}

/** May be empty. Not normalised: a key of other software may sort after its own normal form, and paging would not end. */
export function checkAfter(after: string): string {
  if (after !== '') checkText(after, 'key to list after', KEY_BYTES_MAX);
  return after;
}

/** Returns the owner in its normal form, or throws `InvalidArgumentError`. */
export function checkOwner(owner: unknown): string {
  return checkText(owner, 'owner', OWNER_BYTES_MAX);
}

/** Returns the reason of an eviction, or throws `InvalidArgumentError`. */
export function checkReason(reason: unknown): string {
  return checkText(reason, 'reason', REASON_BYTES_MAX, {
    ifEmpty: 'leave it out, or say why the lease is ended.',
    ifLong: 'shorten it.',
  });
}

const NAME_ADVICE = { ifEmpty: 'give it a name that says what is locked.', ifLong: 'shorten or hash it.' };

function checkText(text: unknown, what: string, bytesMax: number, advice = NAME_ADVICE): string {
  const fail = (problem: string): never => {
    throw new InvalidArgumentError(`The ${what} ${show(text)} ${problem}`);
  };
  if (typeof text !== 'string') return fail('is not a string.');
  if (isPlainText(text)) return text;
  if (text === '') return fail(`is empty: ${advice.ifEmpty}`);
  if (!text.isWellFormed()) return fail('is not valid Unicode: it has half of a surrogate pair.');
  if (CONTROL.test(text)) return fail('has control characters: leave them out.');
  const normal = text.normalize('NFC');
  if (Buffer.byteLength(normal) > bytesMax) return fail(`is longer than ${bytesMax} bytes: ${advice.ifLong}`);
  return normal;
}

/** The metadata as JSON text. */
export function checkMetadata(metadata: unknown): string {
  if (!isPlainObject(metadata)) {
    throw new InvalidArgumentError(
      `metadata is ${show(metadata)}, but has to be an object that JSON can hold.`,
    );
  }
  let text: string | undefined;
  try {
    text = JSON.stringify(metadata);
  } catch (cause) {
    throw new InvalidArgumentError('metadata cannot be written as JSON: leave out cycles and bigints.', {
      cause,
    });
  }
  if (!text?.startsWith('{'))
    throw new InvalidArgumentError('metadata has to be a JSON object: its toJSON returns something else.');
  if (Buffer.byteLength(text) <= METADATA_BYTES_MAX) return text;
  throw new InvalidArgumentError(
    `metadata is longer than ${METADATA_BYTES_MAX} bytes of JSON: store a reference instead.`,
  );
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** A value in an error message: short, and safe to print. */
export function show(value: unknown): string {
  const isPrimitive = value === null || !['object', 'function'].includes(typeof value);
  // An object's own `toString` may be missing, or throw.
  const other = isPrimitive ? String(value) : Object.prototype.toString.call(value);
  const text = typeof value === 'string' ? JSON.stringify(value) : other;
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}
