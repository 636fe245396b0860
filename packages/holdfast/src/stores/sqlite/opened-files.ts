/**
 * Whether the database and the files that SQLite keeps beside it are still those that were opened. SQLite does not notice
 * a change: it would go on in a deleted file, while a later process makes a new one. Both would hold the same locks.
 */
import { statSync } from 'node:fs';
import { systemClock } from '../../clock.js';

/** The log, and the memory by which processes share it. */
const BESIDE = ['-wal', '-shm'];
/** How often the files beside are checked: a check with every command would take a tenth of its time. */
const BESIDE_MS = 100;

interface OpenedFile {
  readonly path: string;
  readonly inode: number;
}

/**
 * Call it once the database is in use. Returns a function that names a removed or replaced file; null while all are there.
 */
export function openedFiles(file: string): () => string | null {
  const main = openedFile(file);
  // In a mode without a log, there are no such files to compare.
  const beside = BESIDE.map((end) => openedFile(file + end)).filter((one) => one !== null);
  let nextMs = Number.NEGATIVE_INFINITY;
  return () => {
    if (main && !isSame(main)) return main.path;
    const nowMs = systemClock.monotonicMs();
    if (nowMs < nextMs) return null;
    const gone = beside.find((one) => !isSame(one));
    if (!gone) nextMs = nowMs + BESIDE_MS;
    return gone?.path ?? null;
  };
}

const inodeOf = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.ino;

const isSame = ({ path, inode }: OpenedFile): boolean => inodeOf(path) === inode;

function openedFile(path: string): OpenedFile | null {
  const inode = inodeOf(path);
  return inode === undefined ? null : { path, inode };
}
