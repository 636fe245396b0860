/**
 * A turn as text, to be given to another process: a list in JSON, in base64url without padding. So it begins with a
 * letter and has no character that a shell, an environment or a URL minds. Whoever has it can hold the lock: it is
 * never shown, and no error repeats any of it.
 */
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
  return Buffer.from(JSON.stringify(fields)).toString('base64url');
}

/** The list, unchecked; null when it is none. */
export function handoffFields(text: string): readonly unknown[] | null {
  // Node skips what is not base64url, and would read a damaged text as another one.
  if (!/^[A-Za-z0-9_-]+$/.test(text)) return null;
  try {
    const fields: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    return Array.isArray(fields) ? fields : null;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    // Not passed on: it repeats a part of what it could not read.
    return null;
  }
}
