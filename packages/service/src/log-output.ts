/**
 * Where a running service writes its log. The lines of one turn of the event loop are written together, after the turn: one
 * write per request would cost as much as the lock. Warnings and errors are written at once, with all lines before them.
 * A process that is killed may lose the lines of its last turn, but no audit entry: `flush` writes what is there.
 */
import process from 'node:process';
import { type DestinationStream, destination, type Logger, pino, symbols } from 'pino';
import { soon } from './clock.js';

/** The level of a line for every request. */
const INFO = 30;
/** More than this is written before the turn is over. */
const PENDING_LETTERS_MAX = 64 * 1_024;

export class LogOutput implements DestinationStream {
  /** Asks pino to set `lastLevel` before every line. */
  readonly [symbols.needsMetadataGsym] = true;
  lastLevel = 0;
  readonly #file: DestinationStream;
  #pending = '';
  #isDue = false;

  constructor(file: DestinationStream) {
    this.#file = file;
  }

  write(line: string): void {
    this.#pending += line;
    if (this.lastLevel > INFO || this.#pending.length > PENDING_LETTERS_MAX) this.flush();
    else if (!this.#isDue) {
      this.#isDue = true;
      soon(this.#onTurn);
    }
  }

  /** Writes all lines so far. Throws when that fails. */
  flush(): void {
    if (this.#pending === '') return;
    const lines = this.#pending;
    this.#pending = '';
    this.#file.write(lines);
  }

  readonly #onTurn = (): void => {
    this.#isDue = false;
    this.flush();
  };
}

export interface ServiceLog {
  readonly log: Logger;
  /** Writes all lines so far. Throws when that fails. */
  flush(): void;
  /** Writes all lines so far, and no longer follows the end of the process. */
  close(): void;
}

/** A log on a file, by default stdout. Its last lines are written when the process exits. */
export function openLog(level: string, file: string | number = process.stdout.fd): ServiceLog {
  const output = new LogOutput(destination({ dest: file, sync: true }));
  const flush = (): void => output.flush();
  process.once('exit', flush);
  return {
    log: pino({ name: 'holdfast', level }, output),
    flush,
    close() {
      process.removeListener('exit', flush);
      flush();
    },
  };
}
