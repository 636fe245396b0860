/**
 * Temporary folders of servers. A test run has one folder for all its processes, named by an environment variable: files
 * that a killed process left behind are removed when the run ends.
 */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { wallMs } from './clock.js';
import { stateOf } from './process-tree.js';
import { hasCode } from './system-error.js';
import { reachableBy, unprivileged } from './unprivileged.js';

const VARIABLE = 'HOLDFAST_SERVERS_RUN';
const PREFIX = 'holdfast-test-servers-';
/** A process of another container is not visible here: only old folders are removed. */
const FORGOTTEN_MS = 3_600_000;
const made = new Set<string>();
const making = new Map<string, Promise<string>>();
let ownRun: string | undefined;

/** The user that the servers run as may not be able to reach the default temporary folder. */
function temporary(): string {
  const usual = realpathSync(tmpdir());
  return reachableBy(unprivileged(), usual) ? usual : '/var/tmp';
}

function removeNow(path: string): void {
  rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
}

/** Removes the folders of runs that were killed: a data folder is large. */
function removeForgotten(parent: string): void {
  for (const name of readdirSync(parent)) {
    const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
    if (pid === undefined || stateOf(Number(pid)) !== 'gone') continue;
    const path = join(parent, name);
    const { uid, mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? {};
    if (uid === process.getuid?.() && wallMs() - (mtimeMs ?? 0) > FORGOTTEN_MS) removeNow(path);
  }
}

/** Makes a folder for this process and all that it starts. Undone by `closeRun`. */
export function openRun(): string {
  const parent = temporary();
  removeForgotten(parent);
  const run = mkdtempSync(join(parent, `${PREFIX}${process.pid}-`));
  // mkdtemp gives access to its owner only, and some servers run as another user.
  chmodSync(run, 0o755);
  mkdirSync(join(run, 'shared'));
  process.env[VARIABLE] = run;
  return run;
}

export function closeRun(run: string): void {
  removeNow(run);
  if (process.env[VARIABLE] === run) delete process.env[VARIABLE];
}

function runFolder(): string {
  const given = process.env[VARIABLE];
  if (given !== undefined && given !== '') return given;
  if (ownRun === undefined) {
    ownRun = openRun();
    made.add(ownRun);
  }
  return ownRun;
}

/** Built in another folder and then renamed, so that no process sees half of it. The second process uses the first one's. */
async function makeShared(path: string, make: (aside: string) => void | Promise<void>): Promise<string> {
  if (existsSync(path)) return path;
  const aside = `${path}.${process.pid}`;
  await make(aside);
  try {
    renameSync(aside, path);
  } catch (error) {
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
    removeNow(aside);
  }
  return path;
}

/** A folder that all processes of one run share, such as a data folder to copy. Returns its path. */
export function madeOnce(name: string, make: (aside: string) => void | Promise<void>): Promise<string> {
  const path = join(runFolder(), 'shared', name);
  const made = making.get(path) ?? makeShared(path, make);
  making.set(path, made);
  return made;
}

export function makeFolder(name: string): string {
  const folder = mkdtempSync(join(runFolder(), `${name}-`));
  made.add(folder);
  return folder;
}

export function removeFolder(folder: string): void {
  removeNow(folder);
  made.delete(folder);
}

process.on('exit', () => {
  for (const folder of [...made].reverse()) removeNow(folder);
});
