/**
 * A URL for `openStore` from LockServiceCentral's settings: with the same records, so that both services may run at once.
 */
import { InvalidArgumentError } from 'holdfast';
import type { Settings } from './setting-values.js';

export const BACKENDS = ['memory', 'dynamodb', 'postgres', 'etcd', 'firestore'] as const;
export type Backend = (typeof BACKENDS)[number];

const ETCD_PORT = 2_379;
const REGION = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
/** Names that DynamoDB allows for a table. */
const TABLE = /^[A-Za-z0-9_.-]{3,255}$/;
/** Ids of projects at Google; empty if its client has to find the project. */
const PROJECT = /^[a-z0-9.:-]*$/;
/** Names that PostgreSQL takes without quotes: of a schema, and of a table with or without its schema. */
const SQL_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/;
const SQL_TABLE = /^(?:[A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}$/;

export function storeOf(backend: Backend, settings: Settings): string {
  switch (backend) {
    case 'memory':
      return 'memory:';
    case 'dynamodb':
      return dynamodbUrl(settings);
    case 'postgres':
      return postgresUrl(settings);
    case 'etcd':
      return etcdUrl(settings);
    case 'firestore':
      return firestoreUrl(settings);
  }
}

function dynamodbUrl(settings: Settings): string {
  const region = settings.get('LOCKER_DYNAMODB_REGION') ?? 'us-east-1';
  const table = settings.get('LOCKER_DYNAMODB_TABLENAME') ?? 'locks';
  if (!REGION.test(region)) {
    throw new InvalidArgumentError('LOCKER_DYNAMODB_REGION has to be a region of AWS, such as us-east-1.');
  }
  if (!TABLE.test(table)) {
    throw new InvalidArgumentError(
      'LOCKER_DYNAMODB_TABLENAME has to be a name that DynamoDB allows for a table.',
    );
  }
  const key = settings.get('LOCKER_DYNAMODB_ACCESSKEYID');
  const secret = settings.get('LOCKER_DYNAMODB_SECRETACCESSKEY');
  if ((key === undefined) !== (secret === undefined)) {
    throw new InvalidArgumentError(
      'LOCKER_DYNAMODB_ACCESSKEYID and LOCKER_DYNAMODB_SECRETACCESSKEY belong together: say both, or leave both to the environment of AWS.',
    );
  }
  const user = key !== undefined && secret !== undefined ? `${credentials(key, secret)}@` : '';
  const options = new URLSearchParams({ layout: 'lock-service-central' });
  const endpoint = settings.url('LOCKER_DYNAMODB_ENDPOINT');
  if (endpoint !== undefined) options.set('endpoint', endpoint);
  return `dynamodb://${user}${region}/${table}?${options}`;
}

function postgresUrl(settings: Settings): string {
  const host = settings.get('LOCKER_POSTGRES_HOST') ?? 'localhost';
  const database = settings.get('LOCKER_POSTGRES_DATABASE') ?? 'lockservice';
  const user = credentials(
    settings.get('LOCKER_POSTGRES_USERNAME') ?? 'postgres',
    settings.get('LOCKER_POSTGRES_PASSWORD'),
  );
  const options = new URLSearchParams({ layout: 'lock-service-central', ...tableOf(settings) });
  if (settings.flag('LOCKER_POSTGRES_SSL')) options.set('sslmode', 'require');
  if (settings.get('LOCKER_POSTGRES_CONNECTIONPOOLSIZE'))
    settings.notes.push('LOCKER_POSTGRES_CONNECTIONPOOLSIZE: not used.');
  const where = `${hostOf(host)}:${portOf(settings)}/${encodeURIComponent(database)}`;
  return `postgres://${user}@${where}?${options}`;
}

/** LockServiceCentral writes both names into its statements without quotes, so PostgreSQL makes their letters small. */
function tableOf(settings: Settings): { readonly schema?: string; readonly table?: string } {
  const nameIn = (setting: string, pattern: RegExp): string | undefined => {
    const name = settings.get(setting);
    if (name === undefined || pattern.test(name)) return name?.toLowerCase();
    throw new InvalidArgumentError(`${setting} has to be a name that PostgreSQL takes without quotes.`);
  };
  const schema = nameIn('LOCKER_POSTGRES_SCHEMA', SQL_NAME);
  const [table, within = schema] = nameIn('LOCKER_POSTGRES_TABLENAME', SQL_TABLE)?.split('.').reverse() ?? [];
  const place = table === undefined ? schema : within;
  return { ...(place !== undefined && { schema: place }), ...(table !== undefined && { table }) };
}

function etcdUrl(settings: Settings): string {
  const isTls = settings.flag('LOCKER_ETCD_TLS_ENABLED');
  const endpoints = (settings.get('LOCKER_ETCD_ENDPOINTS') ?? 'http://localhost:2379').split(',');
  const addresses = endpoints.map((text) => {
    const url = URL.canParse(text.trim()) ? new URL(text.trim()) : null;
    const isPlain = url?.protocol === 'http:' || url?.protocol === 'https:';
    if (url && isPlain && !url.username && !url.search && url.pathname.length <= 1) return url;
    throw new InvalidArgumentError(
      'LOCKER_ETCD_ENDPOINTS has to be a list of URLs such as http://10.0.0.1:2379, with commas between them.',
    );
  });
  // With TLS, the client of LockServiceCentral uses it even for `http:` URLs.
  const isSecure = isTls || addresses.some(({ protocol }) => protocol === 'https:');
  if (!isTls && isSecure && addresses.some(({ protocol }) => protocol === 'http:')) {
    throw new InvalidArgumentError('LOCKER_ETCD_ENDPOINTS has to be all https: or all http:.');
  }
  if (settings.get('LOCKER_ETCD_TLS_CLIENTCERTPATH') ?? settings.get('LOCKER_ETCD_TLS_CLIENTKEYPATH')) {
    throw new InvalidArgumentError(
      'LOCKER_ETCD_TLS_CLIENTCERTPATH: the service cannot present a client certificate to etcd. Use LOCKER_ETCD_AUTH_USERNAME, ' +
        'or the library with a fetch of your own.',
    );
  }
  if (settings.get('LOCKER_ETCD_TLS_CACERTPATH')) {
    settings.notes.push('LOCKER_ETCD_TLS_CACERTPATH: not read. Name the file in NODE_EXTRA_CA_CERTS.');
  }
  for (const name of ['LOCKER_ETCD_REQUESTTIMEOUTMS', 'LOCKER_ETCD_MAXRETRIES']) {
    if (settings.get(name)) settings.notes.push(`${name}: not used.`);
  }
  const user = settings.get('LOCKER_ETCD_AUTH_USERNAME');
  const password = settings.get('LOCKER_ETCD_AUTH_PASSWORD');
  const login = user !== undefined && password !== undefined ? `${credentials(user, password)}@` : '';
  const prefix = settings.get('LOCKER_ETCD_KEYPREFIX') ?? 'locks/';
  const options = new URLSearchParams({ layout: 'lock-service-central', prefix });
  const hosts = addresses.map(({ hostname, port }) => `${hostname}:${port || ETCD_PORT}`);
  return `${isSecure ? 'etcds' : 'etcd'}://${login}${hosts.join(',')}?${options}`;
}

/** Without a project, Google's client finds it. */
function firestoreUrl(settings: Settings): string {
  const collection = settings.get('LOCKER_FIRESTORE_COLLECTION') ?? 'locks';
  const database = settings.get('LOCKER_FIRESTORE_DATABASE') ?? '(default)';
  const project = settings.get('GOOGLE_CLOUD_PROJECT') ?? '';
  if (!PROJECT.test(project) || /[/?#]/.test(collection)) {
    throw new InvalidArgumentError(
      'GOOGLE_CLOUD_PROJECT has to be the id of a project, and LOCKER_FIRESTORE_COLLECTION the name of a collection.',
    );
  }
  const options = new URLSearchParams({ layout: 'lock-service-central' });
  if (database !== '(default)') options.set('database', database);
  return `firestore://${project}/${encodeURIComponent(collection)}?${options}`;
}

function hostOf(host: string): string {
  if (/^[A-Za-z0-9_.-]+$/.test(host)) return host;
  if (/^[0-9A-Fa-f:.]+$/.test(host)) return `[${host}]`;
  throw new InvalidArgumentError('LOCKER_POSTGRES_HOST has to be the name or the address of a host.');
}

function portOf(settings: Settings): number {
  const port = Number(settings.get('LOCKER_POSTGRES_PORT') ?? 5_432);
  if (Number.isInteger(port) && port > 0 && port < 65_536) return port;
  throw new InvalidArgumentError('LOCKER_POSTGRES_PORT has to be a whole number from 1 to 65535.');
}

function credentials(user: string, password: string | undefined): string {
  const name = encodeURIComponent(user);
  return password === undefined ? name : `${name}:${encodeURIComponent(password)}`;
}
