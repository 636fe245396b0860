/**
 * Stores that look at this machine's process table (SQLite) count a holder as gone once its processes are gone. The
 * command is one of them: it may outlive a killed `holdfast run`. With other stores this does nothing.
 *
 * 1. Before the command starts, a process that never ends is noted. Its own id is not known yet, and without this a
 *    kill between its start and its note would free the lock under a living command. With it, the ttl decides.
 * 2. Once it has started its id is noted, and then the first note is taken back.
 *
 * Closing the store takes the notes back. One that cannot be made is a warning and no failure: again the ttl decides.
 */
import type { Store } from 'holdfast';
import { type Terminal, warn } from './output.js';

interface Recording {
  recordProcess(pid: number): Promise<void>;
  forgetProcess(pid: number): Promise<void>;
}

/** The first process of a system, or of a container. */
const NEVER_ENDS = 1;

/** To be called with the command's process id as soon as there is one. */
export type NoteStart = (pid: number) => void;

export async function announceCommand(store: Store, terminal: Terminal): Promise<NoteStart> {
  if (!isRecording(store)) return () => undefined;
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      warn(terminal, 'the store could not take note of the process of the command', error);
    }
  };
  await attempt(() => store.recordProcess(NEVER_ENDS));
  return (pid) => {
    void attempt(async () => {
      await store.recordProcess(pid);
      await store.forgetProcess(NEVER_ENDS);
    });
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
