/**
 * Times as text. Other software compares them as text too, and drops zeros at the end of the fraction: '…:05Z' then
 * counts as later than '…:05.9Z' (F23). Whole seconds in UTC, rounded up, are always 20 characters, and compare right
 * or a moment too late with any of them, never too early.
 */
const SHAPE = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d+))?(Z|[+-]\d{2}:\d{2})$/;

export const LONG_AGO = '1970-01-01T00:00:00Z';

export function secondsUp(ms: number): string {
  return `${new Date(Math.ceil(ms / 1_000) * 1_000).toISOString().slice(0, 19)}Z`;
}

/** With or without a fraction of any length, in any zone; parts of a millisecond count whole. Null: it is no time. */
export function parseTime(text: string | undefined): number | null {
  const [, seconds, fraction = '', zone] = SHAPE.exec(text ?? '') ?? [];
  const ms = Date.parse(`${seconds}${zone}`);
  if (Number.isNaN(ms)) return null;
  return ms + Math.ceil(Number(`0.${fraction || '0'}`) * 1_000);
}
