/**
 * `sqlite:PATH`, or `sqlite:///PATH` for an absolute path. A question mark or per cent sign in the path is written %3F,
 * %25. `?liveness=off`: the lock may outlive the process that claims it.
 */
import { InvalidArgumentError, type Store } from '../../protocol/index.js';
import { decoded } from '../clients/url.js';
import { sqliteStore } from './index.js';

export async function openStore(_scheme: string, rest: string): Promise<Store> {
  const [written = '', ...query] = rest.split('?');
  const liveness = livenessIn(new URLSearchParams(query.join('?')));
  const path = decoded(written.startsWith('//') ? written.slice(2) : written);
  if (path === '')
    throw new InvalidArgumentError('The path is missing: sqlite:PATH, such as sqlite:/var/lib/app/locks.db.');
  if (written.startsWith('//') && !path.startsWith('/')) {
    throw new InvalidArgumentError(
      `"sqlite://${path}" names a host: write sqlite:${path} or sqlite:///${path}.`,
    );
  }
  if (path.startsWith('~')) {
    throw new InvalidArgumentError(`"${path}": only a shell expands ~. Write the whole path.`);
  }
  return sqliteStore(path, { liveness });
}

function livenessIn(query: URLSearchParams): boolean {
  for (const [name, value] of query) {
    if (name !== 'liveness') {
      throw new InvalidArgumentError(`The SQLite store has no option "${name}", only "liveness".`);
    }
    if (value !== 'on' && value !== 'off') {
      throw new InvalidArgumentError(`liveness is "${value}", and has to be on or off.`);
    }
  }
  return query.get('liveness') !== 'off';
}
