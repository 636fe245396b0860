/** The address of a database server in a URL: SCHEME://USER:PASSWORD@HOST:PORT/DATABASE, with the options of tls.ts. */
import { InvalidArgumentError } from '../../protocol/index.js';
import { TLS_OPTIONS, type Tls, tlsOf } from './tls.js';
import { given, hostAndPort, parseServerUrl } from './url.js';

export interface DatabaseTarget {
  readonly host: string;
  readonly port: number;
  readonly user?: string;
  readonly password?: string;
  readonly database?: string;
  readonly tls: Tls | null;
  /** For messages. */
  readonly where: string;
  /** The other options. */
  readonly options: ReadonlyMap<string, string>;
}

export async function databaseTarget(
  scheme: string,
  rest: string,
  port: number,
  options: readonly string[],
): Promise<DatabaseTarget> {
  const form = `${scheme}://USER:PASSWORD@HOST:PORT/DATABASE`;
  const url = parseServerUrl(scheme, rest, form, [...options, ...TLS_OPTIONS]);
  const [address = { host: '', port: null }, ...others] = url.addresses;
  if (others.length > 0) {
    throw new InvalidArgumentError(`${scheme}: takes one host: the primary, or a name that follows it.`);
  }
  const host = address.host || 'localhost';
  return {
    ...given({
      user: url.user ?? undefined,
      password: url.password ?? undefined,
      database: url.path || undefined,
    }),
    host,
    port: address.port ?? port,
    tls: (await tlsOf(url.options, host)) || null,
    where: hostAndPort(host, address.port ?? port),
    options: url.options,
  };
}
