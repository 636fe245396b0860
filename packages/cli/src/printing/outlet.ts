/**
 * stdout and stderr of the command. A full pipe, a full disk or a reader that has left must never keep `run` from ending
 * its command in time, or `serve` from answering. So an outlet never waits or throws.
 *
 * A pipe or a terminal is opened a second time, non-blocking. Making the given one non-blocking, as Node's
 * `process.stdout` does, would change it for the other programs of the pipeline too (see standard-streams.ts).
 * Everything else (files, sockets, pipes without /proc) is written by a thread of Node's pool. A thread that hangs in a
 * socket does not hold up the work, but Node ends only after it.
 */
import { type BigIntStats, constants, fstatSync, openSync, write, writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { after } from '../clock.js';

const RETRY_MS = 5;
const RETRY_MS_MAX = 50;

export interface Outlet {
  readonly isTTY: boolean;
  readonly rows: number;
  /** Whether anything was written here. */
  readonly used: boolean;
  /** The first failed write. */
  readonly failure: NodeJS.ErrnoException | null;
  /** Whether a thread is in a write. Node ends only after that write. */
  readonly inThread: boolean;
  write(text: string | Uint8Array): void;
  /**
   * Calls back once the text was written, or with the error. The caller handles it: `failure` and `used` stay as they are.
   */
  send(text: string | Uint8Array, done: (error: Error | null) => void): void;
  /** Resolves once everything was written or has failed. */
  flushed(): Promise<void>;
}

/** stdout and stderr. If both are the same file, lines keep their order. */
export function openOutlets(): { readonly stdout: Outlet; readonly stderr: Outlet } {
  const queue = new Queue();
  return {
    stdout: new DescriptorOutlet(1, queue),
    stderr: new DescriptorOutlet(2, isSameFile(1, 2) ? queue : new Queue()),
  };
}

class DescriptorOutlet implements Outlet {
  readonly #fd: number;
  readonly #queue: Queue;
  /** Our own non-blocking descriptor; null until it is needed, or if it cannot be opened. */
  #own: number | null = null;
  failure: NodeJS.ErrnoException | null = null;
  used = false;
  inThread = false;

  constructor(fd: number, queue: Queue) {
    this.#fd = fd;
    this.#queue = queue;
  }

  get isTTY(): boolean {
    return isatty(this.#fd);
  }

  get rows(): number {
    // Node opens a terminal a second time by itself, so it does not change the shared one.
    return this.#fd === 1 && this.isTTY ? process.stdout.rows : 0;
  }

  write(text: string | Uint8Array): void {
    this.used = true;
    this.send(text, (error) => {
      this.failure ??= error;
    });
  }

  send(text: string | Uint8Array, done: (error: Error | null) => void): void {
    this.#queue.add({ outlet: this, bytes: Buffer.from(text), done });
  }

  flushed(): Promise<void> {
    return this.#queue.emptied();
  }

  /** Calls back with the number of bytes written, or with the error; null to try again later. */
  attempt(bytes: Buffer, done: (outcome: number | null | Error) => void): void {
    const fail = (error: unknown): void => {
      if (codeOf(error) === 'EAGAIN') done(null);
      else done(error instanceof Error ? error : new Error(String(error)));
    };
    let count: number | null = null;
    try {
      const own = this.#openOwn();
      if (own !== null) count = writeSync(own, bytes);
    } catch (error) {
      fail(error);
      return;
    }
    if (count !== null) {
      done(count);
      return;
    }
    this.inThread = true;
    write(this.#fd, bytes, (error, written) => {
      this.inThread = false;
      if (error) fail(error);
      else done(written);
    });
  }

  #openOwn(): number | null {
    try {
      this.#own ??= canOpenAgain(this.#fd) ? openAgain(this.#fd) : null;
    } catch (error) {
      // No reader has the pipe open, which is the same as EPIPE from a write.
      if (codeOf(error) === 'ENXIO') throw Object.assign(new Error('EPIPE: nobody reads'), { code: 'EPIPE' });
      // The pipe of another user, or no /proc: write by a thread.
      if (!(error instanceof Error && 'code' in error)) throw error;
    }
    return this.#own;
  }
}

interface Chunk {
  readonly outlet: DescriptorOutlet;
  readonly bytes: Buffer;
  readonly done: (error: Error | null) => void;
}

/** Chunks in their order, one at a time. The rest of a chunk that failed is lost. */
class Queue {
  readonly #chunks: Chunk[] = [];
  readonly #waiting: (() => void)[] = [];
  #isSending = false;
  #retryMs = RETRY_MS;

  add(chunk: Chunk): void {
    this.#chunks.push(chunk);
    if (!this.#isSending) this.#send();
  }

  emptied(): Promise<void> {
    if (this.#chunks.length === 0) return Promise.resolve();
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  /** A loop instead of recursion, because thousands of lines may have piled up. */
  #send(): void {
    this.#isSending = true;
    for (let chunk = this.#chunks[0]; chunk; chunk = this.#chunks[0]) {
      let isLate = false;
      let goesOn = false;
      chunk.outlet.attempt(chunk.bytes, (outcome) => {
        goesOn = this.#settle(outcome);
        if (isLate && goesOn) this.#send();
      });
      isLate = true;
      if (!goesOn) return;
    }
    this.#isSending = false;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Whether to continue at once. */
  #settle(outcome: number | null | Error): boolean {
    const [chunk] = this.#chunks;
    if (outcome === null || !chunk) {
      after(this.#retryMs, () => this.#send());
      this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MS_MAX);
      return false;
    }
    this.#retryMs = RETRY_MS;
    const error = outcome instanceof Error ? outcome : null;
    if (typeof outcome === 'number' && outcome < chunk.bytes.length) {
      this.#chunks[0] = { ...chunk, bytes: chunk.bytes.subarray(outcome) };
    } else {
      this.#chunks.shift();
      chunk.done(error);
    }
    return true;
  }
}

function canOpenAgain(fd: number): boolean {
  return process.platform === 'linux' && (isatty(fd) || isPipe(fd));
}

function openAgain(fd: number): number {
  const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
  return openSync(`/proc/self/fd/${fd}`, O_WRONLY | O_NONBLOCK | O_NOCTTY);
}

/**
 * Reads the state as bigints only. A plain `fstat` leaves its numbers in a buffer that Node shares with its module loader:
 * with those of a pipe or a socket, it does not resolve symbolic links, and misses the dependencies beside their targets.
 */
function stateOf(fd: number): BigIntStats {
  return fstatSync(fd, { bigint: true });
}

function isPipe(fd: number): boolean {
  try {
    return stateOf(fd).isFIFO();
  } catch (error) {
    if (codeOf(error) === 'EBADF') return false;
    throw error;
  }
}

function isSameFile(a: number, b: number): boolean {
  try {
    const [one, other] = [stateOf(a), stateOf(b)];
    return one.dev === other.dev && one.ino === other.ino;
  } catch (error) {
    if (codeOf(error) === 'EBADF') return false;
    throw error;
  }
}

/** The code of an error of the system. */
export function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
