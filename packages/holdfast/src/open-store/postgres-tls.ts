/** `sslmode` and its files, with the meaning that they have for psql; the drivers each have a meaning of their own. */
import { readFile } from 'node:fs/promises';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import { InvalidArgumentError } from '../protocol/index.js';

const MODES = ['disable', 'require', 'no-verify', 'verify-ca', 'verify-full'] as const;
export type SslMode = (typeof MODES)[number];

export interface Tls {
  readonly rejectUnauthorized: boolean;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** The name is checked here: given an address, one of the drivers would accept a certificate for `localhost`. */
  readonly checkServerIdentity: (tried: string, certificate: PeerCertificate) => Error | undefined;
}

interface Files {
  readonly rootcert: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

export function checkedSslMode(text: string | undefined): SslMode | undefined {
  if (text === undefined) return undefined;
  const mode = MODES.find((known) => known === text);
  if (mode) return mode;
  throw new InvalidArgumentError(
    `sslmode is one of ${MODES.join(', ')}. (Those of psql that fall back to no encryption are left out.)`,
  );
}

/** Undefined leaves it to the driver's own default: no TLS, unless PGSSLMODE says so. */
export async function tlsOf(
  mode: SslMode | undefined,
  host: string,
  files: Files,
): Promise<Tls | false | undefined> {
  if (mode === undefined || mode === 'disable') {
    if (files.rootcert ?? files.cert ?? files.key) {
      throw new InvalidArgumentError('sslrootcert, sslcert and sslkey need sslmode=verify-full, or another.');
    }
    return mode === undefined ? undefined : false;
  }
  const ca = await text('sslrootcert', files.rootcert);
  const cert = await text('sslcert', files.cert);
  const key = await text('sslkey', files.key);
  const checks = mode === 'verify-ca' || mode === 'verify-full' || (mode === 'require' && ca !== undefined);
  return {
    rejectUnauthorized: checks,
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    checkServerIdentity: (_, certificate) =>
      mode === 'verify-full' ? checkServerIdentity(host, certificate) : undefined,
  };
}

async function text(option: string, path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    throw new InvalidArgumentError(
      `The file that ${option} names cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  }
}
