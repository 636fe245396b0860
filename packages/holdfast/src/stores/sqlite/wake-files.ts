/**
 * Hints between processes, through files in a folder beside the database: one file an inbox. Whoever has a hint
 * appends a line; a file that is not there means that nobody listens. Hints may be lost (a full file, a folder that
 * cannot be made, a system out of watches) and nothing here ever throws for that: waiters ask again by themselves.
 * What went wrong last is kept for `probe`.
 */
import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../clock.js';
import { type Hint, lineOf, ownerOf, watchInbox } from './inbox-file.js';
import { errorCode, isProvablyGone, note, type ProcessTable } from './process-table.js';

export interface WakeFiles {
  send(inbox: string, hints: readonly Hint[]): void;
  /** Returns what stops it. Throws when there is no watching: whoever cannot hear has to ask more often. */
  listen(inbox: string, heard: (hint: Hint) => void): () => void;
  /** What went wrong last, if anything did. */
  trouble(): unknown;
}

/** A file this long is full: its listener is stopped, and what it misses now it finds out by asking. */
const FILE_BYTES_MAX = 64 * 1024;
/** How many other inboxes a new listener looks at, to clear away what dead processes left. */
const TIDIED = 16;

export function wakeFiles(database: string, table: ProcessTable): WakeFiles {
  const folder = `${database}-wake`;
  let trouble: unknown;
  const failed = (error: unknown): void => {
    trouble = error;
  };

  function attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      failed(error);
    }
  }

  /** Whoever may use the database may use the folder: otherwise another user's hints would not arrive. */
  function makeFolder(mode: number): void {
    if (mkdirSync(folder, { recursive: true }) === undefined) return;
    chmodSync(folder, (mode & 0o777) | ((mode & 0o444) >> 2));
  }

  /** Starts anywhere, so that a few living ones do not hide the dead behind them. */
  function tidy(): void {
    const names = readdirSync(folder);
    const start = Math.floor(systemClock.random() * names.length);
    for (const name of [...names.slice(start), ...names.slice(0, start)].slice(0, TIDIED)) {
      const path = join(folder, name);
      attempt(() => {
        const owner = ownerOf(readFileSync(path, 'utf8'));
        if (owner && (owner.boot !== table.boot || isProvablyGone(owner, table))) unlinkSync(path);
      });
    }
  }

  function append(inbox: string, text: string): void {
    const file = openSync(join(folder, fileName(inbox)), constants.O_WRONLY | constants.O_APPEND);
    try {
      if (fstatSync(file).size < FILE_BYTES_MAX) writeSync(file, text);
    } finally {
      closeSync(file);
    }
  }

  return {
    send(inbox, hints) {
      try {
        append(inbox, hints.map(lineOf).join(''));
      } catch (error) {
        // Not there: nobody listens any more.
        if (errorCode(error) !== 'ENOENT') failed(error);
      }
    },
    listen(inbox, heard) {
      let stop = (): void => undefined;
      const start = (): void => {
        const { mode } = statSync(database);
        makeFolder(mode);
        tidy();
        const owner = note(process.pid, table);
        stop = watchInbox({ path: join(folder, fileName(inbox)), mode, owner, heard, failed, removed });
      };
      const removed = (): void => {
        attempt(stop);
        attempt(start);
      };
      try {
        start();
      } catch (error) {
        failed(error);
        throw error;
      }
      return () => attempt(stop);
    },
    trouble: () => trouble,
  };
}

/** The core names inboxes with random letters; whatever else one is called, it must not lead out of the folder. */
function fileName(inbox: string): string {
  return /^[A-Za-z0-9_-]{1,128}$/.test(inbox) ? inbox : `~${Buffer.from(inbox).toString('base64url')}`;
}
