/**
 * One name per file. SQLite keeps its log in two files beside the name that was opened. Processes that open one file by
 * two names would have two logs: they would not see each other's locks, and damage the file. A symbolic link is resolved,
 * and a mounted folder has all three files in it. A hard link, or a mount of the file alone, does not have them.
 */
import { readFileSync, realpathSync, type Stats } from 'node:fs';
import { UnsupportedError } from '../../protocol/index.js';
import { unlessUnreadable } from './process-table.js';

/** The mounts that this process sees; Linux only. */
const MOUNTS = '/proc/self/mountinfo';

/** Throws for a file with several names. */
export function refuseOtherNames(file: string, found: Stats): void {
  if (found.nlink > 1) {
    throw new UnsupportedError(
      `${file} has a second name, a hard link. Processes that open it by different names do not exclude each other: ` +
        'remove the other name, or make a symbolic link.',
    );
  }
  if (mountPoints().includes(realpathSync(file))) {
    throw new UnsupportedError(
      `${file} is mounted by itself, as by \`docker run -v FILE:FILE\` or a \`subPath\` of Kubernetes. SQLite needs the files ` +
        'beside it, too, and processes outside of the mount have others: mount its folder instead.',
    );
  }
}

function mountPoints(): readonly string[] {
  const lines = (unlessUnreadable(() => readFileSync(MOUNTS, 'utf8')) ?? '').split('\n');
  // The fifth word. Spaces in it are written as \040.
  return lines.map((line) => (line.split(' ')[4] ?? '').replaceAll(/\\(\d{3})/g, unescaped));
}

const unescaped = (_: string, octal: string): string => String.fromCharCode(Number.parseInt(octal, 8));
