/**
 * The settings of LockServiceCentral, so that the environment that starts it starts this service too. Nothing is dropped
 * in silence: a setting has its effect, or a note says that it has none, or it is refused. No message repeats a value,
 * because some are secrets.
 */
import { InvalidArgumentError } from 'holdfast';
import { environmentName } from './properties.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** As LockServiceCentral understands them: with an issuer or a JWKS, JWTs are required, whatever else is set. */
export type CentralAuth =
  | { readonly kind: 'unset' }
  | { readonly kind: 'disabled' }
  | {
      readonly kind: 'jwt';
      readonly issuer?: string;
      readonly jwks?: string;
      readonly audience?: string;
    };

export interface CentralSettings {
  /** For `openStore`. Null when the environment names none. */
  readonly store: string | null;
  readonly auth: CentralAuth;
  /** Where to listen, as written. Null when not set. */
  readonly address: string | null;
  readonly port: string | null;
  /** Settings without effect, for the operator. */
  readonly notes: readonly string[];
}

const BACKENDS = ['memory', 'dynamodb', 'postgres', 'etcd', 'firestore'] as const;
type Backend = (typeof BACKENDS)[number];

/** The settings of each store. */
const STORE_SETTINGS: Readonly<Record<Backend, readonly string[]>> = {
  memory: [],
  dynamodb: ['REGION', 'TABLENAME', 'ENDPOINT', 'ACCESSKEYID', 'SECRETACCESSKEY'],
  postgres: [
    ...['HOST', 'PORT', 'DATABASE', 'USERNAME', 'PASSWORD', 'SSL'],
    ...['SCHEMA', 'TABLENAME', 'CONNECTIONPOOLSIZE'],
  ],
  etcd: [],
  firestore: [],
};
/** Settings of its framework that name settings elsewhere, or that have no effect here. */
const ELSEWHERE = /^SPRING_(?:CONFIG_|APPLICATION_JSON$)/;
const WITHOUT_EFFECT = /^(?:SERVER_(?:SSL|SERVLET)|MANAGEMENT)_/;

const YES = ['true', 'yes', 'on', '1'];
const NO = ['false', 'no', 'off', '0'];
const REGION = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
/** Names that DynamoDB allows for a table. */
const TABLE = /^[A-Za-z0-9_.-]{3,255}$/;
/** Names that PostgreSQL takes without quotes: of a schema, and of a table with or without its schema. */
const SQL_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/;
const SQL_TABLE = /^(?:[A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}$/;

/** The settings of LockServiceCentral in an environment; null when there are none. */
export function centralSettings(environment: Environment): CentralSettings | null {
  const settings = new Settings(environment);
  const backend = backendOf(settings);
  const auth = authOf(settings);
  for (const name of settings.named(ELSEWHERE)) {
    settings.notes.push(`${name}: not read. Name a file of properties with --config, or set the variables.`);
  }
  if (backend === null && auth.kind === 'unset' && settings.notes.length === 0) return null;
  const store = backend === null ? null : storeOf(backend, settings);
  for (const name of settings.named(WITHOUT_EFFECT)) settings.notes.push(`${name}: not used.`);
  const port = settings.get('SERVER_PORT') ?? null;
  return { store, auth, address: settings.get('SERVER_ADDRESS') ?? null, port, notes: settings.notes };
}

/** The variables in an environment that choose the store of LockServiceCentral. */
export function centralStoreNames(environment: Environment): string[] {
  const isStore = (name: string): boolean => /^LOCKER_|^SPRING_PROFILES_ACTIVE$/.test(environmentName(name));
  return Object.keys(environment).filter((name) => isStore(name) && environment[name]?.trim());
}

/** The store of LockServiceCentral's variables, for `openStore`; null when there is none. */
export function centralStore(environment: Environment): string | null {
  const names = centralStoreNames(environment);
  return centralSettings(Object.fromEntries(names.map((name) => [name, environment[name]])))?.store ?? null;
}

/** Settings by the names of variables; the names of properties work too. A blank value counts as not set. */
class Settings {
  readonly notes: string[] = [];
  readonly #values = new Map<string, string>();

  constructor(environment: Environment) {
    for (const [name, value = ''] of Object.entries(environment)) {
      if (value.trim() !== '') this.#values.set(environmentName(name), value.trim());
    }
  }

  get(name: string): string | undefined {
    return this.#values.get(name);
  }

  flag(name: string): boolean {
    const word = this.get(name)?.toLowerCase() ?? 'false';
    if (YES.includes(word)) return true;
    if (NO.includes(word)) return false;
    throw new InvalidArgumentError(`${name} has to be true or false.`);
  }

  url(name: string): string | undefined {
    const text = this.get(name);
    if (text === undefined) return undefined;
    const url = URL.canParse(text) ? new URL(text) : null;
    if (url && /^https?:$/.test(url.protocol) && !url.username && !url.password) return text;
    throw new InvalidArgumentError(`${name} has to be an http: or https: URL, without user and password.`);
  }

  /** Names of set variables that match. */
  named(pattern: RegExp): string[] {
    return [...this.#values.keys()].filter((name) => pattern.test(name));
  }

  startingWith(prefix: string): string[] {
    return [...this.#values.keys()].filter((name) => name.startsWith(prefix));
  }
}

function backendOf(settings: Settings): Backend | null {
  const profiles = settings.get('SPRING_PROFILES_ACTIVE')?.split(',') ?? [];
  const named = BACKENDS.filter((backend) => profiles.some((profile) => profile.trim() === backend));
  const settled = BACKENDS.filter((backend) => settings.startingWith(prefixOf(backend)).length > 0);
  const found = named.length > 0 ? named : settled;
  if (found.length > 1) {
    throw new InvalidArgumentError(
      `Settings for more than one store are there: ${found.join(', ')}. Say which in SPRING_PROFILES_ACTIVE.`,
    );
  }
  const [backend = null] = found;
  for (const name of settings.startingWith('LOCKER_')) {
    const owner = BACKENDS.find((each) => name.startsWith(prefixOf(each)));
    if (owner === undefined) {
      throw new InvalidArgumentError(
        `${name} is no setting of LockServiceCentral: its stores are ${BACKENDS.join(', ')}.`,
      );
    }
    if (owner === backend) checkKnown(name, owner);
  }
  for (const other of settled) {
    if (other !== backend) settings.notes.push(`${prefixOf(other)}*: not used, as the store is ${backend}.`);
  }
  return backend;
}

/** A mistyped table would be another table, and nobody would notice. */
function checkKnown(name: string, backend: Backend): void {
  const known = STORE_SETTINGS[backend];
  if (known.length === 0 || known.includes(name.slice(prefixOf(backend).length))) return;
  throw new InvalidArgumentError(
    `${name} is no setting of LockServiceCentral. Those of ${backend} are ${prefixOf(backend)}… with ${known.join(', ')}.`,
  );
}

function prefixOf(backend: Backend): string {
  return `LOCKER_${backend.toUpperCase()}_`;
}

function storeOf(backend: Backend, settings: Settings): string {
  switch (backend) {
    case 'memory':
      return 'memory:';
    case 'dynamodb':
      return dynamodbUrl(settings);
    case 'postgres':
      return postgresUrl(settings);
    case 'etcd':
    case 'firestore':
      throw new InvalidArgumentError(
        `The settings name ${backend} (SPRING_PROFILES_ACTIVE, or ${prefixOf(backend)}*), and Holdfast has no layout for LockServiceCentral's records on ${backend} yet: ` +
          'both services would give the same lock away. ' +
          'Choose another store, with its URL or with SPRING_PROFILES_ACTIVE=dynamodb, postgres or memory. ' +
          'Locks that are held now are not taken along: let them end first.',
      );
  }
}

/** The same table with the same records, so that both services may run at once. */
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

/** The same table with the same rows, so that both services may run at once. */
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

/** LockServiceCentral writes both names into its statements as they are, so PostgreSQL makes their letters small. */
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

function authOf(settings: Settings): CentralAuth {
  const disabled = settings.flag('AUTHENTICATION_DISABLED');
  const issuer = settings.get('JWT_ISSUER');
  const jwks = settings.url('JWT_JWKS');
  const audience = settings.get('JWT_AUDIENCE');
  if (issuer === undefined && jwks === undefined) {
    if (audience !== undefined)
      settings.notes.push('JWT_AUDIENCE: not used, as neither JWT_ISSUER nor JWT_JWKS is there.');
    return disabled ? { kind: 'disabled' } : { kind: 'unset' };
  }
  if (disabled)
    settings.notes.push('AUTHENTICATION_DISABLED: not used, as JWT_ISSUER or JWT_JWKS asks for tokens.');
  return {
    kind: 'jwt',
    ...(issuer === undefined ? {} : { issuer }),
    ...(jwks === undefined ? {} : { jwks }),
    ...(audience === undefined ? {} : { audience }),
  };
}
