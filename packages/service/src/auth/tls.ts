/**
 * TLS from certificate files, checked before the service listens, and again whenever they change: a key that does not fit
 * is told by name.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { InvalidArgumentError } from 'holdfast';
import { wallMs } from '../clock.js';
import type { Tls } from '../http/certificates.js';
import { reasonOf } from './api-key-file.js';

/** `cert`: the chain, the service's own certificate first. Both in PEM. */
export function tlsFromFiles(files: Files): Tls {
  // Before they are read: what is written meanwhile is seen as a change later.
  let state = stateOf(files);
  return {
    ...pairIn(files),
    changed() {
      const before = state;
      state = stateOf(files);
      return state === before ? null : pairIn(files);
    },
  };
}

interface Files {
  readonly cert: string;
  readonly key: string;
}

function pairIn(files: Files): Tls {
  const cert = readable('certificate', () => readFileSync(files.cert));
  const key = readable('private key', () => readFileSync(files.key));
  const own = understood(files.cert, () => new X509Certificate(cert));
  const fits = understood(files.key, () => own.checkPrivateKey(createPrivateKey(key)));
  if (!fits) throw new InvalidArgumentError(`The private key ${files.key} is not that of ${files.cert}.`);
  if (Date.parse(own.validTo) < wallMs()) {
    throw new InvalidArgumentError(`The certificate ${files.cert} expired on ${own.validTo}.`);
  }
  return { cert, key };
}

/** Differs whenever one of them was written; also while one is not there. */
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
    // The reason may repeat what is in the file.
    throw new InvalidArgumentError(`${path} is not understood: PEM is expected, without a passphrase.`, {
      cause: error,
    });
  }
}
