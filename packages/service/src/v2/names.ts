/** Names, durations and holds as clients write them, checked once, at the door. The rules are the library's. */
import { createHash } from 'node:crypto';
import { InvalidArgumentError } from 'holdfast';
import type { HoldId } from 'holdfast/protocol';
import { durationIn } from '../http/duration.js';
import { withRest } from '../lines/holds.js';

const NAME_BYTES_MAX = 512;
/** A namespace, a slash, a name. */
const KEY_BYTES_MAX = 577;
const OWNER_BYTES_MAX = 256;
const METADATA_BYTES_MAX = 4_096;
const METADATA_DEPTH_MAX = 32;
const TTL_MS_MIN = 10;
const NAMESPACE = /^[A-Za-z0-9_.-]{1,64}$/;
const PLAIN = /^[ -~]{1,128}$/;
const CONTROL = /\p{Cc}/u;

/** The process's text, then a number: what the store goes by. */
const HOLD_LETTERS_MAX = 100;
const HOLD = /^[A-Za-z0-9_~-]{1,83}\.[1-9][0-9]{0,15}$/;
export function namespaceOf(text: string): string {
  if (NAMESPACE.test(text)) return text;
  throw new InvalidArgumentError(
    `The namespace ${show(text)} is not usable: take 1 to 64 letters, digits, dots, dashes or underscores.`,
  );
}

export function keyOf(namespace: string, name: string): string {
  return `${namespaceOf(namespace)}/${nameOf(name)}`;
}

/** The namespace of a key as the store has it: what stands before the first slash. */
export function namespaceOfKey(key: string): string {
  return key.slice(0, Math.max(key.indexOf('/'), 0));
}

/** A whole key as a store is given it. Libraries make them, and checked the name before. */
export function checkKey(key: string): string {
  const isUsable = key.isWellFormed() && !CONTROL.test(key) && Buffer.byteLength(key) <= KEY_BYTES_MAX;
  if (key !== '' && isUsable) return key;
  throw new InvalidArgumentError(
    `The key ${show(key)} is not usable: valid Unicode without control characters, 1 to ${KEY_BYTES_MAX} bytes.`,
  );
}

function nameOf(text: string): string {
  return textOf(text, 'name', NAME_BYTES_MAX);
}

/** May be empty. */
export function prefixOf(text: string): string {
  return text === '' ? '' : textOf(text, 'prefix', NAME_BYTES_MAX);
}

export function ownerOf(text: string): string {
  return textOf(text, 'owner', OWNER_BYTES_MAX);
}

/** Two spellings of one letter are one name: compared in Unicode's normal form C. */
function textOf(text: string, what: string, bytesMax: number): string {
  if (PLAIN.test(text)) return text;
  const fail = (problem: string): never => {
    throw new InvalidArgumentError(`The ${what} ${show(text)} ${problem}`);
  };
  if (text === '') return fail('is empty.');
  if (!text.isWellFormed()) return fail('is not valid Unicode: it has half of a surrogate pair.');
  if (CONTROL.test(text)) return fail('has control characters: leave them out.');
  const normal = text.normalize('NFC');
  if (Buffer.byteLength(normal) > bytesMax)
    return fail(`is longer than ${bytesMax} bytes: shorten or hash it.`);
  return normal;
}

export function durationOf(value: number | string, name: string, minMs: number, maxMs: number): number {
  const ms = typeof value === 'string' ? durationIn(value) : value;
  if (ms >= minMs && ms <= maxMs) return Math.round(ms);
  throw new InvalidArgumentError(
    `${name} is ${show(value)}, but has to be a duration from ${minMs} ms to ${maxMs} ms: milliseconds, or like '500ms', '30s', '5m', '1h'.`,
  );
}

export function ttlOf(value: number | string, maxMs: number): number {
  return durationOf(value, 'ttl', TTL_MS_MIN, maxMs);
}

export function metadataOf(metadata: object): string {
  // Asked first: what is nested deeply enough ends JSON.stringify with a full stack.
  if (!isShallow(metadata, METADATA_DEPTH_MAX)) {
    throw new InvalidArgumentError(`metadata is nested deeper than ${METADATA_DEPTH_MAX} levels.`);
  }
  const text = JSON.stringify(metadata);
  if (Buffer.byteLength(text) <= METADATA_BYTES_MAX) return text;
  throw new InvalidArgumentError(
    `metadata is longer than ${METADATA_BYTES_MAX} bytes of JSON: store a reference instead.`,
  );
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
  // Not shown: whatever it is, its sender takes it for a secret.
  throw new InvalidArgumentError(
    `The hold is not usable: letters, digits, _ or -, then a dot and a whole number above 0, at most ${HOLD_LETTERS_MAX} in all.`,
  );
}

/** The same for the same principal, key and Idempotency-Key, in every process of the service. */
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

/** Short, and safe to print. */
function show(value: number | string): string {
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}
