/**
 * Temporary folders of servers. One test run has one folder for all its processes, named by an environment variable, so
 * that whatever a killed process left behind goes when the run ends.
 */
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { reachableBy, unprivileged } from './unprivileged.js';

const VARIABLE = 'HOLDFAST_SERVERS_RUN';
const PREFIX = 'holdfast-servers-';
const made = new Set<string>();
let ownRun: string | undefined;

/** The default temporary folder may be one that the user of the servers cannot reach. */
function temporary(): string {
  const usual = realpathSync(tmpdir());
  return reachableBy(unprivileged(), usual) ? usual : '/var/tmp';
}

function removeNow(path: string): void {
  rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
}

/** Reserves a folder for this process and all that it starts. Undone by `closeRun`. */
export function openRun(): string {
  const run = mkdtempSync(join(temporary(), PREFIX));
  // It was made for its owner alone, and some servers run as another user.
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

/** Where processes of one run keep what is made once, such as a data folder to copy. */
export const sharedFolder = (): string => join(runFolder(), 'shared');

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
