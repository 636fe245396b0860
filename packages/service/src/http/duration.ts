/** Durations as people write them. */

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** Milliseconds of a text such as '500ms', '30s', '5m' or '1h'; NaN for any other text. */
export function durationIn(text: string): number {
  const [, number, unit = ''] = /^(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h)$/.exec(text) ?? [];
  return Number(number) * (UNIT_MS[unit] ?? Number.NaN);
}
