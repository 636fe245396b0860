/** Durations as people write and read them. */
import { usageFailure } from './exit.js';

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

function isUnit(unit: string): unit is keyof typeof UNIT_MS {
  return unit in UNIT_MS;
}

/** Milliseconds. A bare number is refused, as seconds are meant as often as milliseconds; 0 needs no unit. */
export function parseDuration(option: string, text: string): number {
  if (text === '0') return 0;
  const [, count = '', unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text) ?? [];
  if (isUnit(unit)) return Number(count) * UNIT_MS[unit];
  const hint = /^\d+(\.\d+)?$/.test(text)
    ? `add a unit, as in ${text}s`
    : 'write it like 500ms, 30s, 5m or 1h';
  throw usageFailure(`--${option}: "${text}" is not a duration; ${hint}`);
}

/** Two units at most: `12ms`, `4.2s`, `1m 4s`, `3h 5m`, `2d 1h`. */
export function formatDuration(ms: number): string {
  if (ms < 0) return `-${formatDuration(-ms)}`;
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  if (ms < 9_950) return `${Number((ms / 1_000).toFixed(1))}s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3_600) return pair(Math.floor(seconds / 60), 'm', seconds % 60, 's');
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1_440) return pair(Math.floor(minutes / 60), 'h', minutes % 60, 'm');
  const hours = Math.floor(minutes / 60);
  return pair(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

function pair(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit} ${small}${smallUnit}`;
}

/** `2026-03-01 14:05:09`, in this machine's time zone. */
export function formatTime(at: Date): string {
  const two = (part: number): string => String(part).padStart(2, '0');
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}
