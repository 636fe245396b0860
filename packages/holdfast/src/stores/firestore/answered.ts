/** Limits how long a call of Firestore is awaited. It may still be executed afterwards. */
import { within } from '../clients/within.js';

/** Less than the time after which the adapter begins another claim beside hanging ones. */
const ANSWER_MS_MAX = 9_000;

export function answered<T>(call: Promise<T>, limitMs = ANSWER_MS_MAX): Promise<T> {
  const text = `Firestore did not answer in ${limitMs} ms: is it running, and can it be reached?`;
  return within(limitMs, call, () => new Error(text));
}
