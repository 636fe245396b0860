/** Wake-ups as the stores receive them, and their text form `why:key`, which Redis and NATS carry. */
import type { Why } from '../../protocol/index.js';

export type OnWake = (key: string, why: Why) => void;
/** Called with false when wake-ups no longer arrive, and with true when they do again. */
export type OnListening = (listening: boolean) => void;

const REASONS: readonly unknown[] = ['turn', 'waiting', 'evicted'] satisfies Why[];

export function isWhy(value: unknown): value is Why {
  return REASONS.includes(value);
}

/** `keyPrefix`: what the key in the text begins with, and `onWake` does not get. Ignores any other text. */
export function deliverWake(text: string, keyPrefix: string, onWake: OnWake): void {
  const colon = text.indexOf(':');
  const why = text.slice(0, colon);
  if (isWhy(why) && text.startsWith(keyPrefix, colon + 1))
    onWake(text.slice(colon + 1 + keyPrefix.length), why);
}
