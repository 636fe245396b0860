/**
 * `http://` and `https://`: a Holdfast service as a store. Its key stands before the @, or, where it should not be
 * seen in lists of processes, in the environment variable HOLDFAST_API_KEY. (HOLDFAST_LOCK is what "holdfast run" tells
 * its command: the key of the lock.)
 */
import { InvalidArgumentError, type Store } from '../../protocol/index.js';
import { connectedStore } from '../clients/opened-client.js';
import { given, hostAndPort, parseServerUrl } from '../clients/url.js';
import { type HttpStoreOptions, httpStore } from './index.js';

export async function openStore(scheme: string, rest: string): Promise<Store> {
  const options = httpTarget(scheme, rest, process.env.HOLDFAST_API_KEY);
  const where = options.urls.join(', ');
  // The connections are those of `fetch`: nothing to end.
  return connectedStore(httpStore(options), { where, error: () => null, end: async () => undefined });
}

export function httpTarget(
  scheme: string,
  rest: string,
  keyOfEnvironment?: string,
): Required<Pick<HttpStoreOptions, 'urls'>> & Pick<HttpStoreOptions, 'apiKey'> {
  const url = parseServerUrl(scheme, rest, `${scheme}://KEY@HOST:PORT,HOST:PORT/PATH`, []);
  if (url.addresses.some(({ host }) => host === '') || url.addresses.length === 0) {
    throw new InvalidArgumentError(
      `The host is missing: ${scheme}://HOST, such as ${scheme}://localhost:8080.`,
    );
  }
  if (url.password !== null) {
    throw new InvalidArgumentError(
      `Before the @ of a ${scheme}: URL, give the API key of the service, not a user name with a password.`,
    );
  }
  const path = url.path.split('/').map(encodeURIComponent).join('/');
  const urls = url.addresses.map(({ host, port }) =>
    `${scheme}://${hostAndPort(host, port)}/${path}`.replace(/\/+$/, ''),
  );
  return { urls, ...given({ apiKey: url.user ?? (keyOfEnvironment || undefined) }) };
}
