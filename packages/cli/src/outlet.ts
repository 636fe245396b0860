/**
 * Where the command's own lines go. A full pipe that nobody reads, a full disk or a reader that has left must never
 * keep `run` from ending its command in time: nothing here waits, and nothing throws.
 *
 * A pipe or a terminal is opened a second time, as one that does not block. Making the one we were given non-blocking, as
 * Node's `process.stdout` does, would make it so for our neighbours in the pipeline too, which do not expect it (see
 * standard-streams.ts). Everything else (files, sockets, pipes where there is no /proc) is written by a thread. A thread
 * that hangs in a socket which nobody reads does not hold up the work, but Node ends only after it.
 */
import { type BigIntStats, constants, fstatSync, openSync, write, writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { after } from './clock.js';
import { followReaders } from './pipe-readers.js';

const RETRY_MS = 5;
const RETRY_MS_MAX = 50;

export interface Outlet {
  readonly isTTY: boolean;
  readonly rows: number;
  /** Whether anything was to be written here. */
  readonly used: boolean;
  /** Why something was not written, the first time. */
  readonly failure: NodeJS.ErrnoException | null;
  write(text: string | Uint8Array): void;
  /** Resolves once all that was written has gone out or has failed. */
  flushed(): Promise<void>;
  /** Whether nobody will ever read this. Before a write fails it is known of pipes on Linux only. */
  readerLeft(): boolean;
}

/** For stdout and stderr. Where these are the same thing, lines come out in the order in which they were written. */
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
  readonly #haveReadersLeft: () => boolean;
  /** Our own, which does not block; null until it is needed, and where there can be none. */
  #own: number | null = null;
  failure: NodeJS.ErrnoException | null = null;
  used = false;

  constructor(fd: number, queue: Queue) {
    this.#fd = fd;
    this.#queue = queue;
    this.#haveReadersLeft = followReaders(fd);
  }

  get isTTY(): boolean {
    return isatty(this.#fd);
  }

  get rows(): number {
    // A terminal is never shared by this: Node opens it anew.
    return this.#fd === 1 && this.isTTY ? process.stdout.rows : 0;
  }

  write(text: string | Uint8Array): void {
    this.used = true;
    this.#queue.add(this, Buffer.from(text));
  }

  flushed(): Promise<void> {
    return this.#queue.emptied();
  }

  readerLeft(): boolean {
    if (this.failure) return true;
    return isPipe(this.#fd) && this.#haveReadersLeft();
  }

  /** Calls back with how much was written; null to be asked again later. What fails counts as written, and is lost. */
  attempt(bytes: Buffer, done: (count: number | null) => void): void {
    const fail = (error: unknown): void => {
      if (codeOf(error) === 'EAGAIN') {
        done(null);
        return;
      }
      this.failure ??= error instanceof Error ? error : new Error(String(error));
      done(bytes.length);
    };
    let count: number | null = null;
    try {
      const own = this.#openOwn();
      if (own !== null) count = writeSync(own, bytes);
    } catch (error) {
      fail(error);
      return;
    }
    if (count !== null) done(count);
    else write(this.#fd, bytes, (error, written) => (error ? fail(error) : done(written)));
  }

  #openOwn(): number | null {
    try {
      this.#own ??= canOpenAgain(this.#fd) ? openAgain(this.#fd) : null;
    } catch (error) {
      // Nobody has the pipe open for reading: what a write would call EPIPE.
      if (codeOf(error) === 'ENXIO') throw Object.assign(new Error('EPIPE: nobody reads'), { code: 'EPIPE' });
      // Another user's, or no /proc: then by a thread.
      if (!(error instanceof Error && 'code' in error)) throw error;
    }
    return this.#own;
  }
}

/** Chunks in their order, one at a time. */
class Queue {
  readonly #chunks: { readonly outlet: DescriptorOutlet; readonly bytes: Buffer }[] = [];
  readonly #waiting: (() => void)[] = [];
  #retryMs = RETRY_MS;

  add(outlet: DescriptorOutlet, bytes: Buffer): void {
    this.#chunks.push({ outlet, bytes });
    if (this.#chunks.length === 1) this.#send();
  }

  emptied(): Promise<void> {
    if (this.#chunks.length === 0) return Promise.resolve();
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  /** A loop and no recursion: thousands of lines may have piled up. */
  #send(): void {
    for (let chunk = this.#chunks[0]; chunk; chunk = this.#chunks[0]) {
      let isLate = false;
      let goesOn = false;
      chunk.outlet.attempt(chunk.bytes, (count) => {
        goesOn = this.#settle(count);
        if (isLate && goesOn) this.#send();
      });
      isLate = true;
      if (!goesOn) return;
    }
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Whether to go on at once. */
  #settle(count: number | null): boolean {
    const [chunk] = this.#chunks;
    if (count === null || !chunk) {
      after(this.#retryMs, () => this.#send());
      this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MS_MAX);
      return false;
    }
    this.#retryMs = RETRY_MS;
    if (count < chunk.bytes.length) this.#chunks[0] = { ...chunk, bytes: chunk.bytes.subarray(count) };
    else this.#chunks.shift();
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
 * As bigints, and only so: the numbers of a plain `fstat` stay behind in Node, and when they are a pipe's or a socket's,
 * its module loader leaves symbolic links unresolved, and misses the dependencies that lie beside their targets.
 */
function stateOf(fd: number): BigIntStats {
  return fstatSync(fd, { bigint: true });
}

function isPipe(fd: number): boolean {
  if (process.platform !== 'linux') return false;
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

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
