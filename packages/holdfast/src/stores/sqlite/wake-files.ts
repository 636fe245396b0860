/**
 * Wake-ups between processes, through files in a folder beside the database: one file per inbox. The sender appends a
 * line; a missing file means that no process listens. Wake-ups may be lost (a full file, a folder that cannot be made, a
 * system out of watches) without an error: waiters poll as well. The last error is kept for `probe`.
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
import type { OnWake } from '../clients/wake-up.js';
import { lineOf, ownerOf, type WakeUp, watchInbox } from './inbox-file.js';
import { errorCode, isProvablyGone, note, type ProcessTable } from './process-table.js';

/** A file of this size is full, because its listener is stopped. The listener will learn by polling. */
const FILE_BYTES_MAX = 64 * 1024;
/** How many other inboxes a new listener checks, to delete those of dead processes. */
const INBOXES_CHECKED = 16;

export type WakeFiles = ReturnType<typeof wakeFiles>;

export function wakeFiles(database: string, table: ProcessTable) {
  const folder = `${database}-wake`;
  let lastError: unknown;

  const onError = (error: unknown): void => {
    lastError = error;
  };

  function attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      onError(error);
    }
  }

  /** The folder has the permissions of the database: otherwise wake-ups of other users would not arrive. */
  function makeFolder(mode: number): void {
    if (mkdirSync(folder, { recursive: true }) === undefined) return;
    chmodSync(folder, (mode & 0o777) | ((mode & 0o444) >> 2));
  }

  /** Starts at a random file, so that a few living ones do not hide the dead behind them. */
  function tidy(): void {
    const names = readdirSync(folder);
    const start = Math.floor(systemClock.random() * names.length);
    for (const name of [...names.slice(start), ...names.slice(0, start)].slice(0, INBOXES_CHECKED)) {
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
    send(inbox: string, wakeUps: readonly WakeUp[]): void {
      try {
        append(inbox, wakeUps.map(lineOf).join(''));
      } catch (error) {
        // No file: no process listens any more.
        if (errorCode(error) !== 'ENOENT') onError(error);
      }
    },
    /** Returns a function that stops it. Throws if files cannot be watched: the engine then polls more often. */
    listen(inbox: string, onWakeUp: (wakeUp: WakeUp) => void): () => void {
      let stop = (): void => undefined;
      const start = (): void => {
        const { mode } = statSync(database);
        makeFolder(mode);
        tidy();
        const owner = note(process.pid, table);
        const path = join(folder, fileName(inbox));
        stop = watchInbox({ path, mode, owner, onWakeUp, onError, onRemoved });
      };
      const onRemoved = (): void => {
        attempt(stop);
        attempt(start);
      };
      try {
        start();
      } catch (error) {
        onError(error);
        throw error;
      }
      return () => attempt(stop);
    },
    /** The last error, if any. */
    error: () => lastError,
  };
}

/** The engine's inbox names are random letters; any other name is encoded, so that it cannot lead out of the folder. */
function fileName(inbox: string): string {
  return /^[A-Za-z0-9_-]{1,128}$/.test(inbox) ? inbox : `~${Buffer.from(inbox).toString('base64url')}`;
}

interface Inbox {
  readonly listeners: Set<OnWake>;
  readonly stop: () => void;
}

/**
 * The listeners of this process, and the way to those of others. `files` is null if no other process shares the database.
 */
export function inboxes(files: WakeFiles | null) {
  const here = new Map<string, Inbox>();

  function tell(listeners: ReadonlySet<OnWake>, { key, why }: WakeUp): void {
    for (const listener of listeners) queueMicrotask(() => listener(key, why));
  }

  function open(name: string): Inbox {
    const listeners = new Set<OnWake>();
    const stop = files?.listen(name, (wakeUp) => tell(listeners, wakeUp)) ?? (() => undefined);
    const inbox = { listeners, stop };
    here.set(name, inbox);
    return inbox;
  }

  return {
    /** Delivers wake-ups per inbox. After the commit, never before: the receiver must find the change. */
    deliver(byInbox: ReadonlyMap<string, readonly WakeUp[]>): void {
      for (const [name, wakeUps] of byInbox) {
        const inbox = here.get(name);
        if (inbox) for (const wakeUp of wakeUps) tell(inbox.listeners, wakeUp);
        else files?.send(name, wakeUps);
      }
    },
    /** Returns a function that stops it. */
    add(name: string, listener: OnWake): () => void {
      const inbox = here.get(name) ?? open(name);
      inbox.listeners.add(listener);
      return () => {
        inbox.listeners.delete(listener);
        if (inbox.listeners.size > 0 || here.get(name) !== inbox) return;
        here.delete(name);
        inbox.stop();
      };
    },
    close(): void {
      for (const inbox of here.values()) inbox.stop();
      here.clear();
    },
  };
}
