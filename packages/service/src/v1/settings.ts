/**
 * The settings of LockServiceCentral, so that the environment that starts it starts this service too. Nothing that is
 * said here repeats a value: there are secrets among them.
 */
import { InvalidArgumentError } from 'holdfast';

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
  /** What was understood and has no effect here, for the operator. */
  readonly notes: readonly string[];
}

const BACKENDS = ['memory', 'dynamodb', 'postgres', 'etcd', 'firestore'] as const;
type Backend = (typeof BACKENDS)[number];

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
  if (backend === null && auth.kind === 'unset' && said.notes.length === 0) return null;
  const store = backend === null ? null : storeOf(backend, said);
  return { store, auth, notes: said.notes };
}

/** Blank counts as not said. */
class Settings {
  readonly notes: string[] = [];
  readonly #environment: Environment;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  get(name: string): string | undefined {
    return this.#environment[name]?.trim() || undefined;
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

  /** The names that are said and begin so. */
  startingWith(prefix: string): string[] {
    return Object.keys(this.#environment).filter((name) => name.startsWith(prefix) && this.get(name));
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
  for (const other of settled) {
    if (other !== backend) said.notes.push(`${prefixOf(other)}*: not used, as the store is ${backend}.`);
  }
  return backend;
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
  const schema = said.get('LOCKER_POSTGRES_SCHEMA');
  if (schema !== undefined) options.set('schema', schema);
  if (said.flag('LOCKER_POSTGRES_SSL')) options.set('sslmode', 'require');
  said.notes.push(
    'PostgreSQL: locks are kept in tables of Holdfast (made by "holdfast migrate"), not in that of LockServiceCentral. ' +
      'Let locks that are held there end before clients come here.',
  );
  for (const name of ['LOCKER_POSTGRES_TABLENAME', 'LOCKER_POSTGRES_CONNECTIONPOOLSIZE']) {
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
