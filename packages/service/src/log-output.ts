/**
 * The log of a running service, on an output that may fail or stall. Requests never wait for it.
 *
 * 1. The lines of one turn of the event loop are written together, after the turn, and at least 10 ms after the write before
 *    it: one write per request would cost as much as the lock. Warnings and errors are written at once, with all lines before
 *    them.
 * 2. While a write is under way, lines are kept, up to 8 MiB. Lines that do not fit are dropped.
 * 3. The lines of a failed write are dropped. The next lines are a new attempt.
 * 4. Dropped lines are reported at once, and not in the log, which may be stuck for hours. The first write that succeeds
 *    afterwards is followed by a warning with their number.
 *
 * An audit entry is a line whose writer learns whether it was written. A process that is killed may lose the lines of its
 * last turns, but no audit entry that an eviction relied on.
 */
import { type DestinationStream, symbols } from 'pino';
import { after, monotonicMs, soon, within } from './clock.js';

/** The level of a line for every request. */
const INFO = 30;
/** Between the starts of two writes, unless a line is urgent. A busy service has a turn for every few requests. */
const WRITES_APART_MS = 10;
/** Above this size, lines are written before the turn is over. */
const TURN_LETTERS_MAX = 64 * 1_024;
/** The most that waits for a write. The lines of 20,000 requests answered in one turn fit. */
const KEPT_LETTERS_MAX = 8 * 1_024 * 1_024;
/** How long an audit entry waits to be written before it is given up. */
const ENTRY_MS = 2_000;

/**
 * Where a log goes. `write` neither blocks nor throws, and calls back once: after the text was written, or with the error.
 */
export interface Output {
  write(text: string, done: (error?: Error | null) => void): unknown;
  /** Called when lines begin to be dropped; again only after lines could be written meanwhile. Default: no report. */
  onDropping?(): void;
}

/** A listener for dropped lines. */
export interface DropListener {
  /** With the number of lines, whenever some are dropped. */
  onDrop(lines: number): void;
  /** With the number of lines dropped since the start, when lines can be written again. */
  onRecovered(total: number): void;
}

export class LogOutput implements DestinationStream {
  /** Asks pino to set `lastLevel` before every line. */
  readonly [symbols.needsMetadataGsym] = true;
  lastLevel = 0;
  readonly #output: Output;
  readonly #listener: DropListener;
  #lines: string[] = [];
  #letters = 0;
  /** Called when `#lines` were written, or with the error. */
  #entries: ((error: Error | null) => void)[] = [];
  #waiting: (() => void)[] = [];
  #isDue = false;
  #isWriting = false;
  #writtenMs = Number.NEGATIVE_INFINITY;
  #hasFailed = false;
  #dropped = 0;
  #droppedTold = 0;

  constructor(output: Output, listener: DropListener) {
    this.#output = output;
    this.#listener = listener;
  }

  write(line: string): void {
    if (!this.#keep(line)) {
      this.#drop(1);
      return;
    }
    if (this.lastLevel > INFO || this.#letters > TURN_LETTERS_MAX) this.flush();
    else this.#flushSoon();
  }

  /**
   * Writes a line at once, or rejects when that takes too long: then it is never written, unless its write is under way.
   */
  async append(line: string): Promise<void> {
    if (!this.#keep(line)) throw new Error('The log cannot be written: nobody reads it.');
    const written = new Promise<true>((resolve, reject) => {
      this.#entries.push((error) => (error ? reject(error) : resolve(true)));
    });
    this.flush();
    if (await within(ENTRY_MS, written, false)) return;
    this.#withdraw(line);
    throw new Error(`The log could not be written within ${ENTRY_MS} ms.`);
  }

  /** Starts to write all lines so far, unless a write is under way. */
  flush(): void {
    if (this.#isWriting || this.#lines.length === 0) return;
    const lines = this.#lines;
    const entries = this.#entries;
    this.#lines = [];
    this.#letters = 0;
    this.#entries = [];
    this.#isWriting = true;
    this.#writtenMs = monotonicMs();
    // A failed write may have left half a line.
    const text = (this.#hasFailed ? '\n' : '') + lines.join('');
    this.#output.write(text, (error = null) => {
      this.#isWriting = false;
      this.#hasFailed = error !== null;
      if (error) this.#drop(lines.length);
      for (const settle of entries) settle(error);
      if (!error) this.#tellDropped();
      if (this.#isWriting) return;
      if (this.#lines.length > 0) this.#flushSoon();
      else for (const resolve of this.#waiting.splice(0)) resolve();
    });
  }

  /** Resolves once all lines so far were written or dropped. */
  flushed(): Promise<void> {
    this.flush();
    return this.#isWriting ? new Promise((resolve) => void this.#waiting.push(resolve)) : Promise.resolve();
  }

  #keep(line: string): boolean {
    if (this.#letters + line.length > KEPT_LETTERS_MAX) return false;
    this.#lines.push(line);
    this.#letters += line.length;
    return true;
  }

  #withdraw(line: string): void {
    const at = this.#lines.indexOf(line);
    if (at === -1) return;
    this.#lines.splice(at, 1);
    this.#letters -= line.length;
  }

  #drop(lines: number): void {
    if (this.#dropped === this.#droppedTold) this.#output.onDropping?.();
    this.#dropped += lines;
    this.#listener.onDrop(lines);
  }

  #tellDropped(): void {
    if (this.#dropped === this.#droppedTold) return;
    this.#droppedTold = this.#dropped;
    this.#listener.onRecovered(this.#dropped);
  }

  #flushSoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    const waitMs = this.#writtenMs + WRITES_APART_MS - monotonicMs();
    if (waitMs > 0) after(waitMs, this.#onDue);
    else soon(this.#onDue);
  }

  readonly #onDue = (): void => {
    this.#isDue = false;
    this.flush();
  };
}
