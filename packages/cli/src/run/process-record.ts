/**
 * Records the process of the command in a store that watches this machine's processes (SQLite). Such a store frees a lock
 * when all processes of its holder are gone, and the command may outlive a killed `holdfast run`. Other stores need nothing.
 *
 * 1. Before the command starts, a process that never ends is recorded. The command's id is not known yet, and a kill of
 *    `run` before it is recorded would free the lock while the command lives. With this record, the ttl decides.
 * 2. When the command has started, its id is recorded, and the first record is removed.
 *
 * A failed record is tried again until the lease is over; without the first one the command does not start. Only a store
 * that refuses for good gets a warning instead. Closing the store removes the records.
 */
import { HoldfastError, type Lease, type Store } from 'holdfast';
import { pause } from '../clock.js';
import { type Terminal, warn } from '../printing/terminal.js';

interface Recording {
  recordProcess(pid: number): Promise<void>;
  forgetProcess(pid: number): Promise<void>;
}

/** The first process of a system, or of a container. */
const NEVER_ENDS = 1;
const RETRY_MS = 75;

/** Called with the command's process id when it has started. Not awaited; it stops with the signal. */
export type RecordStart = (pid: number, over: AbortSignal) => void;

/** Retries until the signal aborts, or the lease is over. */
export async function recordCommand(
  store: Store,
  lease: Pick<Lease, 'held'>,
  terminal: Terminal,
  stopped: AbortSignal,
): Promise<RecordStart> {
  if (!isRecording(store)) return () => undefined;
  const insist = async (work: () => Promise<void>, over: AbortSignal): Promise<void> => {
    while (!over.aborted && lease.held) {
      try {
        await work();
        return;
      } catch (error) {
        if (error instanceof HoldfastError) {
          warn(terminal, 'the process of the command could not be recorded', error);
          return;
        }
      }
      await pause(RETRY_MS, over);
    }
  };
  await insist(() => store.recordProcess(NEVER_ENDS), stopped);
  return (pid, over) => {
    void insist(async () => {
      await store.recordProcess(pid);
      await store.forgetProcess(NEVER_ENDS);
    }, over);
  };
}

function isRecording(store: object): store is Recording {
  return (
    'recordProcess' in store &&
    typeof store.recordProcess === 'function' &&
    'forgetProcess' in store &&
    typeof store.forgetProcess === 'function'
  );
}
