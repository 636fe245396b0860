/**
 * TLS from certificate files. They are checked before the service listens, and again whenever they change. The error names
 * a key that does not fit.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { InvalidArgumentError } from 'holdfast';
import { monotonicMs, wallMs } from '../clock.js';
import type { Tls } from '../http/certificates.js';
import { reasonOf } from './api-key-file.js';

/** A pair that could not be read is read again: after 1 s, then after twice as long each time, for a minute. */
const READ_AGAIN_MS = 1_000;
const READ_AGAIN_MAX = 6;

/**
 * `cert`: the chain, the service's own certificate first. Both in PEM. An error is thrown once per change, and again only
 * if it is another one.
 */
export function tlsFromFiles(files: Files, { read = readBytes, nowMs = monotonicMs } = {}): Tls {
  // Taken before they are read, so that a write meanwhile counts as a change later.
  let state = stateOf(files);
  let failures = 0;
  let againMs = 0;
  let thrown = '';
  /** Whether the files have to be read. */
  const isDue = (): boolean => {
    const before = state;
    state = stateOf(files);
    if (state === before) return failures > 0 && failures <= READ_AGAIN_MAX && nowMs() >= againMs;
    failures = 0;
    thrown = '';
    return true;
  };
  return {
    ...pairIn(files, read),
    changed() {
      try {
        if (!isDue()) return null;
        againMs = nowMs() + READ_AGAIN_MS * 2 ** failures;
        failures += 1;
        const pair = pairIn(files, read);
        failures = 0;
        return pair;
      } catch (error) {
        if (String(error) === thrown) return null;
        thrown = String(error);
        throw error;
      }
    },
  };
}

interface Files {
  readonly cert: string;
  readonly key: string;
}

function readBytes(path: string): Buffer {
  return readFileSync(path);
}

function pairIn(files: Files, read: typeof readBytes): Tls {
  const cert = readable('certificate', () => read(files.cert));
  const key = readable('private key', () => read(files.key));
  const own = understood(files.cert, () => new X509Certificate(cert));
  const fits = understood(files.key, () => own.checkPrivateKey(createPrivateKey(key)));
  if (!fits) throw new InvalidArgumentError(`The private key ${files.key} is not that of ${files.cert}.`);
  if (Date.parse(own.validTo) < wallMs()) {
    throw new InvalidArgumentError(`The certificate ${files.cert} expired on ${own.validTo}.`);
  }
  return { cert, key };
}

/** A text that changes whenever one of the files is written. A file may be missing. */
function stateOf({ cert, key }: Files): string {
  const states = [cert, key].map((path) => {
    const stat = readable('certificate', () => statSync(path, { bigint: true, throwIfNoEntry: false }));
    return stat ? [stat.ino, stat.size, stat.mtimeNs, stat.ctimeNs] : ['none'];
  });
  return states.join(' ');
}

function readable<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new InvalidArgumentError(`The ${what} cannot be read: ${reasonOf(error)}.`, { cause: error });
  }
}

function understood<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    // The error's own message may repeat a part of the file.
    throw new InvalidArgumentError(`${path} is not valid PEM, or has a passphrase.`, {
      cause: error,
    });
  }
}
