/**
 * The settings of LockServiceCentral, so that the environment that starts it starts this service too. Nothing is dropped
 * in silence: a setting has its effect, or a note says that it has none, or it is refused. No message repeats a value:
 * there are secrets among them.
 */
import { InvalidArgumentError } from 'holdfast';
import { environmentName } from './properties.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** As that service understands them: with an issuer or a JWKS, tokens are asked for, whatever else is said. */
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
  /** Where to listen, as it is written; null where nothing is said. */
  readonly address: string | null;
  readonly port: string | null;
  /** What was understood and has no effect here, for the operator. */
  readonly notes: readonly string[];
}

const BACKENDS = ['memory', 'dynamodb', 'postgres', 'etcd', 'firestore'] as const;
type Backend = (typeof BACKENDS)[number];

/** What each store may be told. */
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
/** What DynamoDB lets a table be called. */
const TABLE = /^[A-Za-z0-9_.-]{3,255}$/;

/** What an environment says in the words of LockServiceCentral; null when it says nothing. */
export function centralSettings(environment: Environment): CentralSettings | null {
  const said = new Settings(environment);
  const backend = backendOf(said);
  const auth = authOf(said);
  for (const name of said.named(ELSEWHERE)) {
    said.notes.push(`${name}: not read. Name a file of properties with --config, or set the variables.`);
  }
  if (backend === null && auth.kind === 'unset' && said.notes.length === 0) return null;
  const store = backend === null ? null : storeOf(backend, said);
  for (const name of said.named(WITHOUT_EFFECT)) said.notes.push(`${name}: not used.`);
  const port = said.get('SERVER_PORT') ?? null;
  return { store, auth, address: said.get('SERVER_ADDRESS') ?? null, port, notes: said.notes };
}

/** The names in an environment that say which store LockServiceCentral has. */
export function centralStoreNames(environment: Environment): string[] {
  const isStore = (name: string): boolean => /^LOCKER_|^SPRING_PROFILES_ACTIVE$/.test(environmentName(name));
  return Object.keys(environment).filter((name) => isStore(name) && environment[name]?.trim());
}

/** The store that an environment names in the words of LockServiceCentral, for `openStore`; null where it names none. */
export function centralStore(environment: Environment): string | null {
  const names = centralStoreNames(environment);
  return centralSettings(Object.fromEntries(names.map((name) => [name, environment[name]])))?.store ?? null;
}

/** Blank counts as not said. Names count in the form of variables and in that of properties. */
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

  /** The names that are said and match. */
  named(pattern: RegExp): string[] {
    return [...this.#values.keys()].filter((name) => pattern.test(name));
  }

  startingWith(prefix: string): string[] {
    return [...this.#values.keys()].filter((name) => name.startsWith(prefix));
  }
}

function backendOf(said: Settings): Backend | null {
  const profiles = said.get('SPRING_PROFILES_ACTIVE')?.split(',') ?? [];
  const named = BACKENDS.filter((backend) => profiles.some((profile) => profile.trim() === backend));
  const settled = BACKENDS.filter((backend) => said.startingWith(prefixOf(backend)).length > 0);
  const found = named.length > 0 ? named : settled;
  if (found.length > 1) {
    throw new InvalidArgumentError(
      `Settings for more than one store are there: ${found.join(', ')}. Say which in SPRING_PROFILES_ACTIVE.`,
    );
  }
  const [backend = null] = found;
  for (const name of said.startingWith('LOCKER_')) {
    const owner = BACKENDS.find((each) => name.startsWith(prefixOf(each)));
    if (owner === undefined) {
      throw new InvalidArgumentError(
        `${name} is no setting of LockServiceCentral: its stores are ${BACKENDS.join(', ')}.`,
      );
    }
    if (owner === backend) checkKnown(name, owner);
  }
  for (const other of settled) {
    if (other !== backend) said.notes.push(`${prefixOf(other)}*: not used, as the store is ${backend}.`);
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

function storeOf(backend: Backend, said: Settings): string {
  switch (backend) {
    case 'memory':
      return 'memory:';
    case 'dynamodb':
      return dynamodbUrl(said);
    case 'postgres':
      return postgresUrl(said);
    case 'etcd':
    case 'firestore':
      throw new InvalidArgumentError(
        `The settings name ${backend} (SPRING_PROFILES_ACTIVE, or ${prefixOf(backend)}*), and Holdfast has no store on ${backend} yet. ` +
          'Choose another store, with its URL or with SPRING_PROFILES_ACTIVE=dynamodb, postgres or memory. ' +
          'Locks that are held now are not taken along: let them end first.',
      );
  }
}

/** The same table with the same records, so that both services may run at once. */
function dynamodbUrl(said: Settings): string {
  const region = said.get('LOCKER_DYNAMODB_REGION') ?? 'us-east-1';
  const table = said.get('LOCKER_DYNAMODB_TABLENAME') ?? 'locks';
  if (!REGION.test(region)) {
    throw new InvalidArgumentError('LOCKER_DYNAMODB_REGION has to be a region of AWS, such as us-east-1.');
  }
  if (!TABLE.test(table)) {
    throw new InvalidArgumentError(
      'LOCKER_DYNAMODB_TABLENAME has to be a name that DynamoDB allows for a table.',
    );
  }
  const key = said.get('LOCKER_DYNAMODB_ACCESSKEYID');
  const secret = said.get('LOCKER_DYNAMODB_SECRETACCESSKEY');
  if ((key === undefined) !== (secret === undefined)) {
    throw new InvalidArgumentError(
      'LOCKER_DYNAMODB_ACCESSKEYID and LOCKER_DYNAMODB_SECRETACCESSKEY belong together: say both, or leave both to the environment of AWS.',
    );
  }
  const user = key !== undefined && secret !== undefined ? `${credentials(key, secret)}@` : '';
  const options = new URLSearchParams({ layout: 'lock-service-central' });
  const endpoint = said.url('LOCKER_DYNAMODB_ENDPOINT');
  if (endpoint !== undefined) options.set('endpoint', endpoint);
  return `dynamodb://${user}${region}/${table}?${options}`;
}

function postgresUrl(said: Settings): string {
  const host = said.get('LOCKER_POSTGRES_HOST') ?? 'localhost';
  const database = said.get('LOCKER_POSTGRES_DATABASE') ?? 'lockservice';
  const user = credentials(
    said.get('LOCKER_POSTGRES_USERNAME') ?? 'postgres',
    said.get('LOCKER_POSTGRES_PASSWORD'),
  );
  const options = new URLSearchParams();
  if (said.flag('LOCKER_POSTGRES_SSL')) options.set('sslmode', 'require');
  // The schema is that of its own table, "locks", beside which ours of the same name could not be.
  said.notes.push(
    'PostgreSQL: locks are kept in the schema "holdfast" (made by "holdfast migrate"), not in the table of ' +
      'LockServiceCentral. Let locks that are held there end before clients come here.',
  );
  for (const setting of ['SCHEMA', 'TABLENAME', 'CONNECTIONPOOLSIZE']) {
    const name = `LOCKER_POSTGRES_${setting}`;
    if (said.get(name)) said.notes.push(`${name}: not used.`);
  }
  const where = `${hostOf(host)}:${portOf(said)}/${encodeURIComponent(database)}`;
  return `postgres://${user}@${where}${options.size > 0 ? `?${options}` : ''}`;
}

function hostOf(host: string): string {
  if (/^[A-Za-z0-9_.-]+$/.test(host)) return host;
  if (/^[0-9A-Fa-f:.]+$/.test(host)) return `[${host}]`;
  throw new InvalidArgumentError('LOCKER_POSTGRES_HOST has to be the name or the address of a host.');
}

function portOf(said: Settings): number {
  const port = Number(said.get('LOCKER_POSTGRES_PORT') ?? 5_432);
  if (Number.isInteger(port) && port > 0 && port < 65_536) return port;
  throw new InvalidArgumentError('LOCKER_POSTGRES_PORT has to be a whole number from 1 to 65535.');
}

function credentials(user: string, password: string | undefined): string {
  const name = encodeURIComponent(user);
  return password === undefined ? name : `${name}:${encodeURIComponent(password)}`;
}

function authOf(said: Settings): CentralAuth {
  const disabled = said.flag('AUTHENTICATION_DISABLED');
  const issuer = said.get('JWT_ISSUER');
  const jwks = said.url('JWT_JWKS');
  const audience = said.get('JWT_AUDIENCE');
  if (issuer === undefined && jwks === undefined) {
    if (audience !== undefined)
      said.notes.push('JWT_AUDIENCE: not used, as neither JWT_ISSUER nor JWT_JWKS is there.');
    return disabled ? { kind: 'disabled' } : { kind: 'unset' };
  }
  if (disabled)
    said.notes.push('AUTHENTICATION_DISABLED: not used, as JWT_ISSUER or JWT_JWKS asks for tokens.');
  return {
    kind: 'jwt',
    ...(issuer === undefined ? {} : { issuer }),
    ...(jwks === undefined ? {} : { jwks }),
    ...(audience === undefined ? {} : { audience }),
  };
}
