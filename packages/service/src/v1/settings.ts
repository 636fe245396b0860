/**
 * The settings of LockServiceCentral, so that an environment for it also starts this service. No setting is dropped in
 * silence: it has its effect, or a note says that it has none, or it is refused. No message repeats a value, because some
 * are secrets.
 */
import { InvalidArgumentError } from 'holdfast';
import { environmentName } from './properties.js';
import { type Environment, Settings } from './setting-values.js';
import { BACKENDS, type Backend, storeOf } from './store-urls.js';

/** Authentication as in LockServiceCentral: with an issuer or a JWKS, JWTs are required, regardless of other settings. */
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

/** The settings of each store. */
const STORE_SETTINGS: Readonly<Record<Backend, readonly string[]>> = {
  memory: [],
  dynamodb: ['REGION', 'TABLENAME', 'ENDPOINT', 'ACCESSKEYID', 'SECRETACCESSKEY'],
  postgres: [
    ...['HOST', 'PORT', 'DATABASE', 'USERNAME', 'PASSWORD', 'SSL'],
    ...['SCHEMA', 'TABLENAME', 'CONNECTIONPOOLSIZE'],
  ],
  etcd: [
    ...['ENDPOINTS', 'KEYPREFIX', 'REQUESTTIMEOUTMS', 'MAXRETRIES', 'AUTH_USERNAME', 'AUTH_PASSWORD'],
    ...['TLS_ENABLED', 'TLS_CACERTPATH', 'TLS_CLIENTCERTPATH', 'TLS_CLIENTKEYPATH'],
  ],
  firestore: ['COLLECTION', 'DATABASE'],
};
/** Settings of its framework that name settings elsewhere, or that have no effect here. */
const ELSEWHERE = /^SPRING_(?:CONFIG_|APPLICATION_JSON$)/;
const WITHOUT_EFFECT = /^(?:SERVER_(?:SSL|SERVLET)|MANAGEMENT)_/;

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
  if (names.length > 0) names.push('GOOGLE_CLOUD_PROJECT');
  return centralSettings(Object.fromEntries(names.map((name) => [name, environment[name]])))?.store ?? null;
}

function backendOf(settings: Settings): Backend | null {
  const profiles = settings.get('SPRING_PROFILES_ACTIVE')?.split(',') ?? [];
  const named = BACKENDS.filter((backend) => profiles.some((profile) => profile.trim() === backend));
  const settled = BACKENDS.filter((backend) => settings.startingWith(prefixOf(backend)).length > 0);
  const found = named.length > 0 ? named : settled;
  if (found.length > 1) {
    throw new InvalidArgumentError(
      `There are settings for more than one store: ${found.join(', ')}. Choose one with SPRING_PROFILES_ACTIVE.`,
    );
  }
  const [backend = null] = found;
  for (const name of settings.startingWith('LOCKER_')) {
    const owner = BACKENDS.find((each) => name.startsWith(prefixOf(each)));
    if (owner === undefined) {
      throw new InvalidArgumentError(
        `${name} is not a setting of LockServiceCentral: its stores are ${BACKENDS.join(', ')}.`,
      );
    }
    if (owner === backend) checkKnown(name, owner);
  }
  for (const other of settled) {
    if (other !== backend) settings.notes.push(`${prefixOf(other)}*: not used, as the store is ${backend}.`);
  }
  return backend;
}

/** Refuses unknown settings: with a mistyped one ignored, another table would be used, unnoticed. */
function checkKnown(name: string, backend: Backend): void {
  const known = STORE_SETTINGS[backend];
  if (known.length === 0 || known.includes(name.slice(prefixOf(backend).length))) return;
  throw new InvalidArgumentError(
    `${name} is not a setting of LockServiceCentral. Settings for ${backend}: ${prefixOf(backend)}… with ${known.join(', ')}.`,
  );
}

function prefixOf(backend: Backend): string {
  return `LOCKER_${backend.toUpperCase()}_`;
}

function authOf(settings: Settings): CentralAuth {
  const disabled = settings.flag('AUTHENTICATION_DISABLED');
  const issuer = settings.get('JWT_ISSUER');
  const jwks = settings.url('JWT_JWKS');
  const audience = settings.get('JWT_AUDIENCE');
  if (issuer === undefined && jwks === undefined) {
    if (audience !== undefined)
      settings.notes.push('JWT_AUDIENCE: not used, as neither JWT_ISSUER nor JWT_JWKS is set.');
    return disabled ? { kind: 'disabled' } : { kind: 'unset' };
  }
  if (disabled)
    settings.notes.push('AUTHENTICATION_DISABLED: not used, as JWT_ISSUER or JWT_JWKS requires JWTs.');
  return {
    kind: 'jwt',
    ...(issuer === undefined ? {} : { issuer }),
    ...(jwks === undefined ? {} : { jwks }),
    ...(audience === undefined ? {} : { audience }),
  };
}
