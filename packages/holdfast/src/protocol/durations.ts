/** Durations as users write them: milliseconds, or text such as '500ms', '30s', '5m', '1h', '7d'. */
import { InvalidArgumentError } from './errors.js';
import { show } from './names.js';

/** The shortest ttl. */
export const TTL_MS_MIN = 10;
/** The longest ttl: seven days. */
export const TTL_MS_MAX = 7 * 86_400_000;

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Milliseconds; NaN for text that is no duration. */
export function parseDuration(text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? [];
  return Number(number) * (UNIT_MS[unit ?? ''] ?? Number.NaN);
}

/** Whole milliseconds within the limits, or `InvalidArgumentError`. */
export function durationMs(value: unknown, name: string, minMs: number, maxMs: number): number {
  const ms = typeof value === 'string' ? parseDuration(value) : value;
  if (typeof ms === 'number' && ms >= minMs && ms <= maxMs) return Math.round(ms);
  const isUnbounded = maxMs === Number.POSITIVE_INFINITY;
  const range = isUnbounded
    ? `of at least ${readable(minMs)}`
    : `from ${readable(minMs)} to ${readable(maxMs)}`;
  throw new InvalidArgumentError(
    `${name} is ${show(value)}, but has to be a duration ${range}: milliseconds, or like '500ms', '30s', '5m', '1h', '7d'${isUnbounded ? ', or Infinity' : ''}.`,
  );
}

/** In the greatest unit that gives a whole number, as it can be written in a call. */
function readable(ms: number): string {
  if (ms === 0) return '0';
  const units = Object.entries(UNIT_MS).filter(([, unitMs]) => ms % unitMs === 0);
  const [name, unitMs] = units.at(-1) ?? ['ms', 1];
  return `${ms / unitMs}${name}`;
}
