/** Wake-ups as the stores receive them, and their text form: the reason, a separator and the key. */
import type { Why } from '../../protocol/index.js';

export type OnWake = (key: string, why: Why) => void;
/** Called with false when wake-ups no longer arrive, and with true when they do again. */
export type OnListening = (listening: boolean) => void;

const REASONS: readonly unknown[] = ['turn', 'waiting', 'evicted'] satisfies Why[];

export function isWhy(value: unknown): value is Why {
  return REASONS.includes(value);
}

/** Ignores any other text: anybody may publish on a channel. */
export function deliverWake(text: string, separator: string, onWake: OnWake): void {
  const end = text.indexOf(separator);
  const why = text.slice(0, end);
  if (end !== -1 && isWhy(why)) onWake(text.slice(end + separator.length), why);
}
