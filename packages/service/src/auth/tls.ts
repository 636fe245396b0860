/** TLS from certificate files, checked before the service listens: a key that does not fit is told by name. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { InvalidArgumentError } from 'holdfast';
import { wallMs } from '../clock.js';
import type { Tls } from '../http/server.js';
import { reasonOf } from './key-file.js';

/** `cert`: the chain, the service's own certificate first. Both in PEM. */
export function tlsFromFiles(files: { readonly cert: string; readonly key: string }): Tls {
  const cert = content(files.cert, 'certificate');
  const key = content(files.key, 'private key');
  const own = understood(files.cert, () => new X509Certificate(cert));
  const fits = understood(files.key, () => own.checkPrivateKey(createPrivateKey(key)));
  if (!fits) throw new InvalidArgumentError(`The private key ${files.key} is not that of ${files.cert}.`);
  if (Date.parse(own.validTo) < wallMs()) {
    throw new InvalidArgumentError(`The certificate ${files.cert} expired on ${own.validTo}.`);
  }
  return { cert, key };
}

function content(path: string, what: string): Buffer {
  try {
    return readFileSync(path);
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
