/** Findings about this database on this machine. The probe changes nothing. */
// By the name `promises`, Node loads that module only at its first use: the start of the command does not need it.
import { promises, readFileSync } from 'node:fs';
import { systemClock } from '../../clock.js';
import type { Finding, Guarantees } from '../../protocol/index.js';
import { findingsOf, good, note, warning } from '../clients/findings.js';
import type { SqliteDatabase } from './database.js';
import { errorCode } from './process-table.js';
import type { WakeFiles } from './wake-files.js';

export interface Probed {
  readonly database: SqliteDatabase;
  readonly file: string | null;
  readonly files: WakeFiles | null;
  readonly now: () => number;
  readonly canProve: boolean;
  readonly wallClock: boolean;
}

const PUSH_MS_MAX = 500;
const SYNCHRONOUS = ['OFF', 'NORMAL', 'FULL', 'EXTRA'];
/** File systems on which SQLite's locks, or its log's shared memory, do not hold between machines. */
const NETWORK =
  /^(nfs\d?|cifs|smb\d?|smbfs|9p|afs|ceph|lustre|gfs2|ocfs2|fuse\.(sshfs|glusterfs|s3fs|rclone|gcsfuse|ceph.*))$/;

export async function probe(probed: Probed): Promise<Guarantees> {
  const { database, file, files, canProve, wallClock } = probed;
  const now = probed.now();
  const { version } = database.prepare('SELECT sqlite_version() AS version').get() as { version: string };
  const findings = findingsOf(
    file === null
      ? warning('The database is in memory: only callers in this process exclude each other.')
      : journal(database),
    file !== null && fileSystem(file),
    file !== null &&
      (canProve
        ? good('A holder whose process died is noticed within 250 ms.')
        : note('Dead processes cannot be detected here: a dead holder counts until its ttl.')),
    wallClock
      ? warning('Time is the wall clock: setting it ends leases early or late.')
      : good("Time is the machine's monotonic clock: setting the wall clock changes nothing."),
    files && (await push(files)),
  );
  return { server: `SQLite ${version}, ${file ?? 'in memory'}`, now, findings };
}

function journal(database: SqliteDatabase): Finding {
  const { journal_mode: mode } = database.prepare('PRAGMA journal_mode').get() as { journal_mode: string };
  const { synchronous } = database.prepare('PRAGMA synchronous').get() as { synchronous: number };
  const text = `Journal mode ${mode}, synchronous ${SYNCHRONOUS[synchronous] ?? synchronous}.`;
  return mode === 'wal'
    ? good(`${text} Survives the death of any process; a power cut may forget the last moments before it.`)
    : warning(`${text} Without a write-ahead log every command waits for the disk.`);
}

function fileSystem(file: string): Finding | null {
  const type = typeOfFileSystem(file);
  if (type === null) return note('The file system of the file is unknown.');
  if (!NETWORK.test(type)) return null;
  return warning(`The file lies on ${type}. Locks there are not safe between machines: use a local disk.`);
}

/** The type of the longest mount point above the file. Null if unknown. */
export function typeOfFileSystem(file: string, mounts: () => string = readMounts): string | null {
  let best: { readonly point: string; readonly type: string } | null = null;
  for (const line of mounts().split('\n')) {
    const [, escaped, type] = line.split(' ');
    if (escaped === undefined || type === undefined) continue;
    const point = escaped.replace(/\\(\d{3})/g, (_, octal: string) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    );
    if (!file.startsWith(point.endsWith('/') ? point : `${point}/`)) continue;
    if (!best || point.length >= best.point.length) best = { point, type };
  }
  return best?.type ?? null;
}

function readMounts(): string {
  try {
    return readFileSync('/proc/self/mounts', 'utf8');
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
    return '';
  }
}

/** Sends a wake-up to this process through a real file. */
async function push(files: WakeFiles): Promise<Finding> {
  const inbox = systemClock.randomId();
  const sentMs = systemClock.monotonicMs();
  let receivedMs: number | null = null;
  let failure: unknown;
  try {
    const stop = files.listen(inbox, () => {
      receivedMs = systemClock.monotonicMs();
    });
    files.send(inbox, [{ key: 'probe', why: 'turn' }]);
    // A read lets the event loop turn.
    while (receivedMs === null && systemClock.monotonicMs() - sentMs < PUSH_MS_MAX) await promises.stat('.');
    stop();
  } catch (error) {
    failure = error;
  }
  if (receivedMs !== null) {
    return good(`Push works: a wake-up through a file took ${(receivedMs - sentMs).toFixed(1)} ms.`);
  }
  failure ??= files.error();
  const why = failure instanceof Error ? ` (${failure.message})` : '';
  return warning(`Push does not work${why}: waiters poll, a few times a second.`);
}
