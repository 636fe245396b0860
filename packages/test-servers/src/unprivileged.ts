/**
 * PostgreSQL and PgBouncer refuse to run as root: there they run as `postgres`, or as `nobody` where that user does not
 * exist. Other users run them as themselves.
 */
import { chownSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

export interface User {
  readonly uid: number;
  readonly gid: number;
}

const isRoot = (): boolean => process.getuid?.() === 0;

/** Undefined: no other user is needed. */
export function unprivileged(): User | undefined {
  if (!isRoot()) return undefined;
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
  for (const name of ['postgres', 'nobody']) {
    const [, , uid, gid] = lines.find((line) => line.startsWith(`${name}:`))?.split(':') ?? [];
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error('PostgreSQL refuses to run as root, and there is no user postgres or nobody to run it as');
}

export function giveTo(user: User | undefined, path: string): void {
  if (user !== undefined) chownSync(path, user.uid, user.gid);
}

/** Whether other users may enter every parent folder: not in a checkout in root's home. */
export function reachableBy(user: User | undefined, path: string): boolean {
  if (user === undefined) return true;
  for (let folder = path; ; folder = dirname(folder)) {
    const { mode, uid, gid } = statSync(folder);
    const bit = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001;
    if ((mode & bit) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}
