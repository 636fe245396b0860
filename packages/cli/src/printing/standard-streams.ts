/**
 * Replaces `process.stdin`, `process.stdout` and `process.stderr` for packages that open them, some while they are loaded:
 * database clients, and modules of Node. Node's own streams make a pipe or socket non-blocking for every process that
 * shares it, and the other processes then fail with EAGAIN. These streams write through the outlets of the command, and
 * read nothing. Terminals stay as they are, because Node opens them a second time.
 *
 * Loaded before everything else (bin/holdfast.js): a module of Node may open them when it is linked.
 */
import { Readable, Writable } from 'node:stream';
import { isatty } from 'node:tty';
import { type Outlet, openOutlets } from './outlet.js';

export const { stdout, stderr } = openOutlets();

replace('stdin', 0, () => Readable.from([]));
replace('stdout', 1, () => writerTo(stdout));
replace('stderr', 2, () => writerTo(stderr));

function replace(name: 'stdin' | 'stdout' | 'stderr', fd: number, open: () => Readable | Writable): void {
  if (isatty(fd)) return;
  let opened: Readable | Writable | null = null;
  const get = (): Readable | Writable => {
    opened ??= Object.assign(open(), { fd });
    return opened;
  };
  Object.defineProperty(process, name, { configurable: true, enumerable: true, get });
}

function writerTo(outlet: Outlet): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      outlet.write(chunk);
      done();
    },
  });
}
