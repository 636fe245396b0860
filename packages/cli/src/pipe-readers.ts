/**
 * Who reads the pipe that we write to, as far as /proc shows: a writer learns that its readers have left only by
 * writing. A reader that was never seen (outside of our container, another user's) is not missed either.
 */
import { lstatSync, readdirSync, readlinkSync } from 'node:fs';

/** To look for readers costs more than to look after those that are known: without any, it is not tried for ever. */
const SEARCHES_MAX = 5;
const READABLE = 0o400;

/** Each call of the function returned tells whether all the readers that there were have left. */
export function followReaders(fd: number): () => boolean {
  let known: readonly string[] = [];
  let searches = 0;
  return () => {
    const pipe = linkOf(`/proc/self/fd/${fd}`);
    if (pipe === null || known.some((pid) => reads(pid, pipe))) return false;
    const wereThere = known.length > 0;
    if (!wereThere && searches === SEARCHES_MAX) return false;
    searches += 1;
    // Those that left may have handed it on.
    known = (seen(() => readdirSync('/proc')) ?? []).filter(
      (name) => /^\d+$/.test(name) && reads(name, pipe),
    );
    return wereThere && known.length === 0;
  };
}

function reads(pid: string, pipe: string): boolean {
  const folder = `/proc/${pid}/fd`;
  const names = seen(() => readdirSync(folder)) ?? [];
  return names.some((name) => {
    const path = `${folder}/${name}`;
    // The mode of such a link says what the file was opened for.
    return linkOf(path) === pipe && ((seen(() => lstatSync(path))?.mode ?? 0) & READABLE) !== 0;
  });
}

function linkOf(path: string): string | null {
  return seen(() => readlinkSync(path));
}

/** Null when it has gone meanwhile, or may not be seen. */
function seen<T>(look: () => T): T | null {
  try {
    return look();
  } catch (error) {
    if (error instanceof Error && 'code' in error) return null;
    throw error;
  }
}
