/**
 * Keys as ids for engines that reserve "/" and ids such as ".", ".." and "__name__": ~0 for "~", ~1 for "/", and ~2 or
 * ~3 for a "." or "_" at the start. An id is twice as long as its key at most, and keeps its order by prefixes.
 */
const TO_ESCAPE = /[~/]|^[._]/g;
const ESCAPED = '~/._';

export function idOf(key: string): string {
  return key.replaceAll(TO_ESCAPE, (character) => `~${ESCAPED.indexOf(character)}`);
}

/** Null for an id that `idOf` never returns. */
export function keyOf(id: string): string | null {
  const key = id.replaceAll(/~([0-3])/g, (_, index: string) => ESCAPED.charAt(Number(index)));
  return idOf(key) === id ? key : null;
}
