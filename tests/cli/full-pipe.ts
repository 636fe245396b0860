/** A pipe whose reader stalls. */
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Place } from './holdfast.js';

export interface FullPipe {
  /** What was written since the pipe was full. */
  readonly drain: () => string;
  readonly close: () => void;
}

/** A named pipe of the place that is full, and open for reading, but read by nobody. */
export async function fullPipe(place: Place, name: string): Promise<FullPipe> {
  await place.startOther('mkfifo', [name]).ended;
  const fd = openSync(join(place.folder, name), constants.O_RDWR | constants.O_NONBLOCK);
  const page = Buffer.alloc(4_096, 'x');
  for (let room = true; room; ) room = tried(() => writeSync(fd, page)) > 0;
  return {
    drain() {
      const buffer = Buffer.alloc(1 << 20);
      let text = '';
      for (let count = 1; count > 0; ) {
        count = tried(() => readSync(fd, buffer));
        text += buffer.toString('utf8', 0, count);
      }
      return text.replace(/^x+/, '');
    },
    close: () => closeSync(fd),
  };
}

function tried(act: () => number): number {
  try {
    return act();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return 0;
    throw error;
  }
}
