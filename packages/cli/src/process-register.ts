/**
 * Stores that look at this machine's process table (SQLite) count a holder as gone once its processes are gone. The
 * command is one of them: it may outlive a killed `holdfast run`. With other stores this does nothing.
 *
 * 1. Before the command starts, a process that never ends is noted. Its own id is not known yet, and without this a
 *    kill between its start and its note would free the lock under a living command. With it, the ttl decides.
 * 2. Once it has started its id is noted, and then the first note is taken back.
 *
 * A store that cannot take a note now is asked again until the lease is over: without the first note the command does
 * not start. Only a store that never will is a warning and no failure. Closing the store takes the notes back.
 */
import { HoldfastError, type Lease, type Store } from 'holdfast';
import { pause } from './clock.js';
import { type Terminal, warn } from './output.js';

interface Recording {
  recordProcess(pid: number): Promise<void>;
  forgetProcess(pid: number): Promise<void>;
}

/** The first process of a system, or of a container. */
const NEVER_ENDS = 1;
const RETRY_MS = 75;

/** To be called with the command's process id as soon as there is one; not awaited, and given up with the signal. */
export type NoteStart = (pid: number, over: AbortSignal) => void;

/** Gives up with the signal, or once the lease is over. */
export async function announceCommand(
  store: Store,
  lease: Pick<Lease, 'held'>,
  terminal: Terminal,
  stopped: AbortSignal,
): Promise<NoteStart> {
  if (!isRecording(store)) return () => undefined;
  const insist = async (work: () => Promise<void>, over: AbortSignal): Promise<void> => {
    while (!over.aborted && lease.held) {
      try {
        await work();
        return;
      } catch (error) {
        if (error instanceof HoldfastError) {
          warn(terminal, 'the store could not take note of the process of the command', error);
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
