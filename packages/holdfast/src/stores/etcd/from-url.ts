/** `etcd://` and `etcds://`: the store on etcd's gateway, the latter over TLS. */
import { InvalidArgumentError, type Store } from '../../protocol/index.js';
import { layoutNamed } from '../clients/layout.js';
import { connectedStore } from '../clients/opened-client.js';
import { given, hostAndPort, parseServerUrl, serversIn } from '../clients/url.js';
import { type EtcdClientOptions, type EtcdStoreOptions, etcdClient, etcdStore } from './index.js';
import * as layouts from './layouts.js';

const PORT = 2379;

export async function openStore(scheme: string, rest: string): Promise<Store> {
  const { client, options } = etcdTarget(scheme, rest);
  // The connections are those of `fetch`: nothing to end.
  const end = async (): Promise<void> => undefined;
  const store = etcdStore(etcdClient(client), options);
  return connectedStore(store, { where: client.endpoints.join(', '), error: () => null, end });
}

interface EtcdTarget {
  readonly client: EtcdClientOptions;
  readonly options: EtcdStoreOptions;
}

export function etcdTarget(scheme: string, rest: string): EtcdTarget {
  const form = `${scheme}://USER:PASSWORD@HOST:PORT,HOST:PORT/PREFIX`;
  const url = parseServerUrl(scheme, rest, form, ['layout', 'prefix']);
  const { user, password, path } = url;
  if (user !== null && password === null) {
    throw new InvalidArgumentError(`A user of etcd needs a password: ${scheme}://USER:PASSWORD@HOST.`);
  }
  if (path !== '' && url.options.has('prefix')) {
    throw new InvalidArgumentError(
      `The prefix of the keys is given twice: as a path, and as the option prefix.`,
    );
  }
  // A path ends with a slash; the option is the prefix as it is.
  const prefix = path === '' ? url.options.get('prefix') : `${path.replace(/\/+$/, '')}/`;
  const protocol = scheme === 'etcds' ? 'https' : 'http';
  const endpoints = serversIn(url, PORT).map(({ host, port }) => `${protocol}://${hostAndPort(host, port)}`);
  return {
    client: { endpoints, ...given({ user: user ?? undefined, password: password ?? undefined }) },
    options: given({ prefix, layout: layoutNamed(layouts, url.options.get('layout'), 'etcd') }),
  };
}
