/** The state of a lock as the text of a column, and the version of a row. */
import { systemClock } from '../../clock.js';
import { checkVersion, EMPTY_STATE, type State } from '../../protocol/index.js';

/** Escaped in JSON, so that the text has the same bytes in every character set that a connection may have. */
const BEYOND_ASCII = /[\u007f-\uffff]/g;
const IS_BEYOND_ASCII = /[\u007f-\uffff]/;

/** JSON in ASCII letters. */
export function textOf(state: State): string {
  const text = JSON.stringify(state);
  if (!IS_BEYOND_ASCII.test(text)) return text;
  return text.replace(BEYOND_ASCII, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Throws for a state of a newer format. */
export function stateIn(text: string, key: string): State {
  const stored = JSON.parse(text) as Partial<State>;
  checkVersion(stored.version, key);
  return { ...EMPTY_STATE, ...stored };
}

/** Longer than any version. */
export const VERSION_LENGTH_MAX = 40;

let versions = 0;
const OWN_ID = systemClock.randomId();

/** A version that no row ever had. */
export function newVersion(): string {
  versions += 1;
  return `${OWN_ID}.${versions.toString(36)}`;
}
