/** The log that `serve` opens: its level, its output, and its end. */
import process from 'node:process';
import { type Logger, pino } from 'pino';
import { within } from './clock.js';
import { LogOutput, type Output } from './log-output.js';

/** How long closing waits for the last lines. */
const CLOSE_MS = 1_000;

export interface ServiceLog {
  readonly log: Logger;
  /** Writes a line at once, at any log level. Rejects when it cannot be written in time. */
  append(line: string): Promise<void>;
  /** Calls back with the number of lines, whenever some are dropped. One caller at a time. */
  onDrop(run: (lines: number) => void): void;
  /** Writes all lines so far, for a limited time, and no longer follows the end of the process. */
  close(): Promise<void>;
}

/** A log on an output. Its last lines are written when the process exits. */
export function openLog(level: string, output: Output): ServiceLog {
  let count: (lines: number) => void = ignore;
  const lines = new LogOutput(output, {
    onDrop: (dropped) => count(dropped),
    onRecovered: (dropped) =>
      log.warn(
        { dropped },
        'lines of this log could not be written: the number of lines dropped since the start',
      ),
  });
  const log = pino({ name: 'holdfast', level }, lines);
  const flush = (): void => lines.flush();
  process.once('exit', flush);
  return {
    log,
    append: (line) => lines.append(line),
    onDrop(run) {
      count = run;
    },
    async close() {
      await within(CLOSE_MS, lines.flushed(), undefined);
      process.removeListener('exit', flush);
    },
  };
}

function ignore(): void {}

/** stdout of a program that runs the service. It stays usable after a failed write. */
export function standardOutput(): Output {
  const { stdout } = process;
  // Failures are known from the callback; without a listener, the event would end the process.
  if (!stdout.listeners('error').includes(ignore)) stdout.on('error', ignore);
  return {
    write(text, done) {
      try {
        stdout.write(text, done);
      } catch (error) {
        // Node throws if stdout is a file.
        done(error instanceof Error ? error : new Error(String(error)));
      }
    },
  };
}
