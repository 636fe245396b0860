/** TLS of a URL, for databases: `sslmode`, `sslrootcert`, `sslcert` and `sslkey`. */
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import { InvalidArgumentError } from '../../protocol/index.js';
import { contentOf, given } from './url.js';

export const TLS_OPTIONS = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey'];
const SSL_MODES = ['disable', 'require', 'no-verify', 'verify-ca', 'verify-full'] as const;

export interface Tls {
  readonly rejectUnauthorized: boolean;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** Whether the certificate has to name the host of the URL, as `checkServerIdentity` checks. */
  readonly verifiesHost: boolean;
  /** Checks the host of the URL: given an address, one of the drivers would accept a certificate for `localhost`. */
  readonly checkServerIdentity: (tried: string, certificate: PeerCertificate) => Error | undefined;
}

/**
 * `sslmode` and its files with the meaning that psql gives them; the drivers' own meanings differ. Undefined leaves the
 * decision to the driver: no TLS, unless PGSSLMODE asks pg for it.
 */
export async function tlsOf(
  options: ReadonlyMap<string, string>,
  host: string,
): Promise<Tls | false | undefined> {
  const text = options.get('sslmode');
  const mode = SSL_MODES.find((known) => known === text);
  if (text !== undefined && mode === undefined) {
    throw new InvalidArgumentError(
      `sslmode is one of ${SSL_MODES.join(', ')}. (Those of psql that fall back to no encryption are left out.)`,
    );
  }
  if (mode === undefined || mode === 'disable') {
    if (TLS_OPTIONS.slice(1).some((name) => options.has(name))) {
      throw new InvalidArgumentError('sslrootcert, sslcert and sslkey need sslmode=verify-full, or another.');
    }
    return mode === undefined ? undefined : false;
  }
  const ca = await contentOf('sslrootcert', options.get('sslrootcert'));
  const cert = await contentOf('sslcert', options.get('sslcert'));
  const key = await contentOf('sslkey', options.get('sslkey'));
  return {
    verifiesHost: mode === 'verify-full',
    rejectUnauthorized: mode.startsWith('verify') || (mode === 'require' && ca !== undefined),
    ...given({ ca, cert, key }),
    checkServerIdentity: (_, certificate) =>
      mode === 'verify-full' ? checkServerIdentity(host, certificate) : undefined,
  };
}
