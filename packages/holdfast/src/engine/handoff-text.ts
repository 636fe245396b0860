/**
 * A turn as text, to be given to another process: a list in JSON, in base64url without padding. So it begins with a
 * letter and has no character that a shell, an environment or a URL minds. Whoever has it can hold the lock: it is
 * never shown, and no error repeats any of it.
 *
 * The last of the list is a sum over the others. One wrong character could be a higher token, and a guard that was given
 * that would refuse everybody after it. It proves nothing about who made the text.
 */
import { createHash } from 'node:crypto';
import type { HandedOff } from './adoption.js';

/** The first of the list. A library refuses texts with a higher one. */
export const HANDOFF_VERSION = 1;

export function handoffText({ id, request, token, acquiredAt }: HandedOff): string {
  const { key, owner, permits, capacity, ttlMs, minHoldMs, renew, metadata } = request;
  const { process, number } = id;
  const fields = [
    HANDOFF_VERSION,
    key,
    process,
    number,
    token,
    acquiredAt,
    owner,
    permits,
    capacity,
    ttlMs,
    minHoldMs,
    renew,
    metadata,
  ];
  return Buffer.from(JSON.stringify([...fields, sumOf(fields)])).toString('base64url');
}

function sumOf(fields: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(fields)).digest('base64url').slice(0, 8);
}

/** The list, unchecked; null when it is none. */
export function handoffFields(text: string): readonly unknown[] | null {
  // Node skips what is not base64url, and would read a damaged text as another one.
  if (!/^[A-Za-z0-9_-]+$/.test(text)) return null;
  try {
    const fields: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    return Array.isArray(fields) ? whole(fields) : null;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    // Not passed on: it repeats a part of what it could not read.
    return null;
  }
}

/** What a newer library sums up otherwise is for the reader to refuse: in words, by its version. */
function whole(fields: readonly unknown[]): readonly unknown[] | null {
  const [version] = fields;
  if (typeof version === 'number' && version > HANDOFF_VERSION) return fields;
  const summed = fields.slice(0, -1);
  return sumOf(summed) === fields.at(-1) ? summed : null;
}
