/**
 * One inbox as a file: created, watched, read and emptied by its listener alone. The first line names the listening
 * process; every further line is a wake-up. The watch does not keep the process alive.
 */
import {
  closeSync,
  type FSWatcher,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  rmSync,
  watch,
  writeSync,
} from 'node:fs';
import type { Why } from '../../protocol/index.js';
import { isWhy } from '../clients/wake-up.js';
import type { NotedProcess } from './process-table.js';

export interface WakeUp {
  readonly key: string;
  readonly why: Why;
}

export interface InboxFile {
  readonly path: string;
  readonly mode: number;
  readonly owner: NotedProcess;
  onWakeUp(wakeUp: WakeUp): void;
  onError(error: unknown): void;
  /** Another process deleted the file. */
  onRemoved(): void;
}

/** A file of this size is emptied after reading. */
const READ_BYTES_MAX = 16 * 1024;
const NEWLINE = 0x0a;

export function lineOf({ key, why }: WakeUp): string {
  return `${why} ${JSON.stringify(key)}\n`;
}

/** Null while the first line is incomplete. */
export function ownerOf(text: string): NotedProcess | null {
  const end = text.indexOf('\n');
  return end === -1 ? null : (JSON.parse(text.slice(0, end)) as NotedProcess);
}

/** Returns a function that stops it. */
export function watchInbox({ path, mode, owner, onWakeUp, onError, onRemoved }: InboxFile): () => void {
  const file = openSync(path, 'w+');
  fchmodSync(file, mode & 0o666);
  const start = writeSync(file, `${JSON.stringify(owner)}\n`);
  const buffer = Buffer.alloc(READ_BYTES_MAX);
  let offset = start;
  let stopped = false;

  function deliver(line: string): void {
    const [why, ...rest] = line.split(' ');
    if (!isWhy(why)) throw new SyntaxError(`Not a wake-up: ${line}`);
    onWakeUp({ why, key: JSON.parse(rest.join(' ')) as string });
  }

  function readNew(): void {
    const { size, nlink } = fstatSync(file);
    if (nlink === 0) {
      onRemoved();
      return;
    }
    if (size < offset) offset = start;
    for (;;) {
      const bytes = buffer.subarray(0, readSync(file, buffer, 0, buffer.length, offset));
      const end = bytes.lastIndexOf(NEWLINE) + 1;
      if (end === 0) break;
      offset += end;
      for (const line of bytes.toString('utf8', 0, end - 1).split('\n')) deliver(line);
    }
    if (offset < READ_BYTES_MAX) return;
    // A wake-up between the read and this line is lost, once in hundreds; its waiter polls as well.
    ftruncateSync(file, start);
    offset = start;
  }

  function changed(): void {
    if (stopped) return;
    try {
      readNew();
    } catch (error) {
      onError(error);
    }
  }

  function stop(): void {
    if (stopped) return;
    stopped = true;
    watcher?.close();
    closeSync(file);
    rmSync(path, { force: true });
  }

  let watcher: FSWatcher | undefined;
  try {
    watcher = watch(path, { persistent: false }, changed);
    watcher.on('error', onError);
  } catch (error) {
    stop();
    throw error;
  }
  // Read wake-ups from before the watch.
  changed();
  return stop;
}
