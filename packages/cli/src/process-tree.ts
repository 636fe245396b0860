/**
 * The processes that a process started, and those that they started, as far as /proc tells.
 * KILL gives a command no chance to end its own children, so whoever kills it must. Elsewhere than on Linux: none.
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
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch (error) {
    if (error instanceof Error && 'code' in error) return null;
    throw error;
  }
}
