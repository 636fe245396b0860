/**
 * What /proc tells of processes: those that a process started, and those that they started; and how one ended.
 * KILL gives a command no chance to end its own children, so whoever kills it must. Elsewhere than on Linux: nothing.
 */
import { readdirSync, readFileSync } from 'node:fs';

export function descendantsOf(pid: number): number[] {
  if (process.platform !== 'linux') return [];
  const children = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const parent = parentOf(name);
    if (parent === null) continue;
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const found: number[] = [];
  const seen = [pid];
  for (const next of seen) {
    for (const child of children.get(next) ?? []) {
      found.push(child);
      seen.push(child);
    }
  }
  return found;
}

/** Null when it has gone meanwhile, or is hidden. */
function parentOf(pid: string): number | null {
  const [, parent] = fieldsOf(pid) ?? [];
  return parent === undefined ? null : Number(parent);
}

/** How a process ended that was not collected yet; null while it runs, undefined where that cannot be seen. */
export function endOf(pid: number): { readonly signal: number } | null | undefined {
  if (process.platform !== 'linux') return undefined;
  const fields = fieldsOf(String(pid));
  return fields ? endIn(fields) : undefined;
}

/** Of a program of another user (sudo) the kernel shows no wait status: a 0. */
function endIn(fields: readonly string[]): { readonly signal: number } | null {
  const { 0: state, 17: threads, 49: waitStatus } = fields;
  // A first thread may end before the others.
  if (state !== 'Z' || Number(threads) > 1) return null;
  return { signal: Number(waitStatus ?? 0) & 0x7f };
}

/** Of /proc/PID/stat, from the state on. The name before it may hold anything, brackets and spaces too. */
function fieldsOf(pid: string): string[] | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch (error) {
    if (error instanceof Error && 'code' in error) return null;
    throw error;
  }
}
