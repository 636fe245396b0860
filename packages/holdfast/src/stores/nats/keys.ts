/**
 * Names as keys of a bucket: letters, digits, '-', '_', '/' and single dots inside stay as they are, every other byte is
 * '=' and two hexadecimal digits. So any name is legal, no two names share a key, and plain names stay readable.
 */

/** Not a result of `kvKeyOf`: there, a '=' is followed by two digits. */
export const CLOCK_KEY = '=clock';
const EMPTY_KEY = '=';

const PLAIN = /^[A-Za-z0-9_/-]+(?:\.[A-Za-z0-9_/-]+)*$/;
const TO_ESCAPE = /[^A-Za-z0-9_/.-]+|^\.+|\.{2,}|\.+$/g;
const ESCAPED = /^(?:[A-Za-z0-9_/.-]|=[0-9A-F]{2})+$/;

export function kvKeyOf(key: string): string {
  if (PLAIN.test(key)) return key;
  if (key === '') return EMPTY_KEY;
  return key.replaceAll(TO_ESCAPE, escaped);
}

/** Null for a key that `kvKeyOf` never returns. */
export function keyOf(kvKey: string): string | null {
  if (PLAIN.test(kvKey)) return kvKey;
  if (kvKey === EMPTY_KEY) return '';
  if (!ESCAPED.test(kvKey)) return null;
  const bytes = Buffer.from(
    kvKey.replaceAll(/=(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  );
  const key = bytes.toString('utf8');
  return kvKeyOf(key) === kvKey ? key : null;
}

/** One token of a subject, for inboxes. */
export function tokenOf(name: string): string {
  return name === '' ? EMPTY_KEY : name.replaceAll(/[^A-Za-z0-9_-]+/g, escaped);
}

function escaped(text: string): string {
  return Buffer.from(text, 'utf8').toString('hex').toUpperCase().replaceAll(/../g, '=$&');
}
