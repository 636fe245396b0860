/**
 * The system's process table, and the proof that a process is gone. Anything that cannot be read (a hidden /proc, another
 * container, another system) proves nothing, and the ttl decides.
 */
import { readFileSync, readlinkSync } from 'node:fs';
import { UnsupportedError } from '../../protocol/index.js';
import { isError } from '../../protocol/is-error.js';

export interface ProcessStat {
  /** The start time in ticks since the boot: distinguishes a process from a later one with the same id. */
  readonly started: string;
  /** Whether it has ended, and its parent has not collected it yet. */
  readonly zombie: boolean;
}

/** The system's process table. Replaced in tests. */
export interface ProcessTable {
  /** The id of this boot. Null if unknown. */
  readonly boot: string | null;
  /** Processes with the same value see the same process ids and start times. Null if they cannot be compared. */
  readonly namespace: string | null;
  /** Processes with the same value read the same machine clock. Null if unknown. */
  readonly clock: string | null;
  /** False only if there is certainly no such process. */
  exists(pid: number): boolean;
  /** Null when it cannot be read. */
  stat(pid: number): ProcessStat | null;
}

/** A process as noted in the database. Members that could not be read are null. */
export interface NotedProcess {
  readonly pid: number;
  readonly started: string | null;
  readonly boot: string | null;
  readonly namespace: string | null;
}

export function isProvablyGone(noted: NotedProcess, table: ProcessTable): boolean {
  if (table.boot === null || noted.boot !== table.boot) return false;
  if (table.namespace === null || noted.namespace !== table.namespace) return false;
  if (!table.exists(noted.pid)) return true;
  const stat = table.stat(noted.pid);
  if (stat === null || noted.started === null) return false;
  return stat.zombie || stat.started !== noted.started;
}

export function note(pid: number, table: ProcessTable): NotedProcess {
  return { pid, started: table.stat(pid)?.started ?? null, boot: table.boot, namespace: table.namespace };
}

/** Reads constant values once. */
export function systemProcessTable(): ProcessTable {
  const boot = unlessUnreadable(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim());
  // Clocks, and with them start times, differ between time namespaces. Kernels before 5.6 have none.
  const time = unlessUnreadable(() => readlinkSync('/proc/self/ns/time')) ?? 'time:[]';
  const pids = unlessUnreadable(ownNamespace);
  return {
    boot,
    namespace: pids === null ? null : `${pids} ${time}`,
    clock: boot === null ? null : `${boot} ${time}`,
    exists,
    stat: (pid) => unlessUnreadable(() => parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'))),
  };
}

/** Null if /proc is of another namespace: it shows other processes under our numbers, so they cannot be compared. */
function ownNamespace(): string | null {
  if (readlinkSync('/proc/self') !== String(process.pid)) return null;
  return readlinkSync('/proc/self/ns/pid');
}

function exists(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return errorCode(error) !== 'ESRCH';
  }
}

/** Fields are counted after the name, which may contain spaces and brackets. Null for other lines. */
export function parseStat(line: string): ProcessStat | null {
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  const [state, threads, started] = [fields[0], Number(fields[17]), fields[19]];
  if (state === undefined || started === undefined || started === '') return null;
  // The first thread may have ended while others still run.
  return { started, zombie: (state === 'Z' || state === 'X') && threads <= 1 };
}

/** Null if this system does not have or show the value. */
export function unlessUnreadable<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (errorCode(error) !== undefined) return null;
    // Deno without a permission: the message says which one.
    throw new UnsupportedError(`Linux's information about this process cannot be read: ${String(error)}`, {
      cause: error,
    });
  }
}

export function errorCode(error: unknown): string | undefined {
  return isError(error) && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
