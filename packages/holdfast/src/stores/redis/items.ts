/**
 * The items of an answer. Whether a client gives numbers as text, texts as buffers, or speaks the third version of
 * Redis's protocol makes no difference here.
 */
import { inspect } from 'node:util';

export function notUnderstood(reply: unknown): Error {
  return new Error(`Redis answered something that is no reply: ${inspect(reply).slice(0, 200)}`);
}

export function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw notUnderstood(value);
}

export function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : Number(textOf(value));
}

export function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return Buffer.isBuffer(value) ? value.toString('utf8') : String(value);
}

export function isAbsent(value: unknown): boolean {
  return value === null || value === undefined || value === false;
}

export function textOrNull(value: unknown): string | null {
  return isAbsent(value) ? null : textOf(value);
}
