/** Processes by their ids: their children, and whether they run, are stopped or have ended. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { hasCode } from './system-error.js';

type State = 'running' | 'stopped' | 'gone';

interface Stat {
  readonly letter: string;
  readonly parent: number;
}

const hasProc = existsSync('/proc/self/stat');

/** The name in parentheses may contain spaces and parentheses: the fields after the last one are fixed. */
function statOf(pid: number): Stat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [letter = '', parent = ''] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { letter, parent: Number(parent) };
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH')) return undefined;
    throw error;
  }
}

/** Without /proc, as on macOS, the system's own list. */
function listed(): ReadonlyMap<number, Stat> {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,stat='], { encoding: 'utf8' }).split('\n');
  const rows = lines.map((line) => line.trim().split(/\s+/)).filter((row) => row.length === 3);
  return new Map(rows.map(([pid, parent, letter = '']) => [Number(pid), { letter, parent: Number(parent) }]));
}

function all(): ReadonlyMap<number, Stat> {
  if (!hasProc) return listed();
  const found = new Map<number, Stat>();
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? statOf(Number(name)) : undefined;
    if (stat !== undefined) found.set(Number(name), stat);
  }
  return found;
}

export function childrenOf(pid: number): readonly number[] {
  return [...all()].filter(([, { parent }]) => parent === pid).map(([child]) => child);
}

/** A zombie has ended. */
export function stateOf(pid: number): State {
  const stat = hasProc ? statOf(pid) : listed().get(pid);
  if (stat === undefined || /^[ZX]/.test(stat.letter)) return 'gone';
  return /^[Tt]/.test(stat.letter) ? 'stopped' : 'running';
}

/** False when there is no such process. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH')) return false;
    throw error;
  }
}
