/** Keys, holders, durations and times, as text for people and as JSON for machines. Hold ids are not part of either. */
import type { HolderInfo, KeyInfo, WaiterInfo } from 'holdfast';
import { READ_WRITE_CAPACITY } from 'holdfast/protocol';
import { type Column, printable, type Terminal, table } from './terminal.js';

/** Messages name at most this many holders. */
const NAMED_MAX = 3;

/** `web-1:42 since 2026-03-01 14:05:09 (4.2s ago) until 14:05:39 (in 26s) unless renewed` */
export function holderText(holder: HolderInfo, now: Date): string {
  const since = `since ${formatTime(holder.acquiredAt)} (${formatDuration(elapsed(holder.acquiredAt, now))} ago)`;
  const until = `until ${formatTime(holder.expiresAt)} (in ${formatDuration(elapsed(now, holder.expiresAt))})`;
  const who = printable(holder.owner);
  return holder.resting
    ? `${who}, released, cooling down ${until}`
    : `${who} ${since} ${until} unless renewed`;
}

export function holdersText({ holders, now }: KeyInfo): string {
  const named = holders.slice(0, NAMED_MAX).map((holder) => holderText(holder, now));
  const more = holders.length - named.length;
  return named.join('; ') + (more > 0 ? `; and ${more} more` : '');
}

/** Owners in a message: `alice, bob and 2 more`. */
export function names(owners: readonly string[]): string {
  const more = owners.length - NAMED_MAX;
  const named = owners.slice(0, NAMED_MAX).map(printable).join(', ');
  return more > 0 ? `${named} and ${more} more` : named;
}

/** Milliseconds; 0 when `to` comes before. */
export function elapsed(from: Date, to: Date): number {
  return Math.max(0, to.getTime() - from.getTime());
}

/** `2: bob, carol` */
function waitersText(waiters: readonly WaiterInfo[]): string {
  return `${waiters.length}: ${names(waiters.map(({ owner }) => owner))}`;
}

export function permitsText({ permits, capacity }: HolderInfo | WaiterInfo): string {
  if (capacity === READ_WRITE_CAPACITY && permits === 1) return 'shared';
  return capacity === 1 ? '1' : `${permits} of ${capacity}`;
}

const COLUMNS: readonly Column[] = [
  { title: 'KEY', colour: 'bold' },
  { title: 'HOLDER', colour: 'cyan' },
  { title: 'PERMITS', right: true },
  { title: 'TOKEN', right: true },
  { title: 'HELD FOR', right: true },
  { title: 'EXPIRES IN', right: true },
  { title: 'WAITING', colour: 'yellow' },
];

/** One line per holder; a key that only has waiters has a line too. */
export function keyTable(terminal: Terminal, keys: readonly KeyInfo[]): string[] {
  return table(terminal, COLUMNS, keys.flatMap(rowsOf));
}

function rowsOf({ key, now, holders, waiters }: KeyInfo): string[][] {
  const waiting = waiters.length === 0 ? '-' : waitersText(waiters);
  const name = printable(key);
  if (holders.length === 0) return [[name, '-', '-', '-', '-', '-', waiting]];
  return holders.map((holder, at) => [
    at === 0 ? name : '',
    printable(holder.owner) + (holder.resting ? ' (cooling down)' : ''),
    permitsText(holder),
    String(holder.token),
    formatDuration(elapsed(holder.acquiredAt, now)),
    formatDuration(elapsed(now, holder.expiresAt)),
    at === 0 ? waiting : '',
  ]);
}

/** The `--json` form of a key. Times are ISO 8601 by the store's clock. */
export function keyJson({ key, now, holders, waiters }: KeyInfo): object {
  return { key, now: now.toISOString(), holders: holders.map(holderJson), waiters: waiters.map(waiterJson) };
}

export function holderJson(holder: HolderInfo): object {
  return {
    owner: holder.owner,
    permits: holder.permits,
    capacity: holder.capacity,
    token: holder.token,
    acquiredAt: holder.acquiredAt.toISOString(),
    expiresAt: holder.expiresAt.toISOString(),
    metadata: holder.metadata ?? null,
    resting: holder.resting,
  };
}

function waiterJson({ owner, permits, capacity, since }: WaiterInfo): object {
  return { owner, permits, capacity, since: since.toISOString() };
}

/** At most two units: `12ms`, `4.2s`, `1m 4s`, `3h 5m`, `2d 1h`. */
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
