/** A row as it is written: its version, the state of the lock as text, and the time from which on it may be deleted. */
import { systemClock } from '../../clock.js';
import { checkVersion, EMPTY_STATE, expendableAt, type State } from '../../protocol/index.js';

export interface NewRow {
  /** One that no row ever had. */
  readonly version: string;
  /** JSON in ASCII letters. */
  readonly state: string;
  /** In milliseconds. */
  readonly deleteAfter: number;
}

/** Longer than any version. */
export const VERSION_LENGTH_MAX = 40;

let versions = 0;
const OWN_ID = systemClock.randomId();

export function rowOf(state: State): NewRow {
  versions += 1;
  return {
    version: `${OWN_ID}.${versions.toString(36)}`,
    state: textOf(state),
    deleteAfter: expendableAt(state),
  };
}

/** Escaped in JSON, so that the text has the same bytes in every character set that a connection may have. */
const BEYOND_ASCII = /[\u007f-\uffff]/g;
const IS_BEYOND_ASCII = /[\u007f-\uffff]/;

function textOf(state: State): string {
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
