/** The configuration: from flags, environment and a file, in this order, checked before anything starts. */
import { InvalidArgumentError } from 'holdfast';
import { parseDuration } from 'holdfast/protocol';
import { type PrincipalLimits, principalLimitsOf } from '../auth/allowance.js';
import { rightsOf } from '../auth/rights.js';
import { proxiesOf } from '../http/addresses.js';
import { type Limits, limitsOf } from '../http/limits.js';
import { environmentName, propertiesIn } from '../v1/properties.js';
import type { Environment } from '../v1/setting-values.js';
import { isOwnAddress } from './own-address.js';
import {
  centralVariables,
  ownVariables,
  readFile,
  SETTINGS,
  type Setting,
  type SettingName,
  type Values,
} from './settings.js';

/** Issuer or audience may be missing only with settings of LockServiceCentral. */
export interface JwtConfig {
  readonly issuer: string | null;
  readonly audience: string | null;
  readonly jwks: string | null;
  /** The rights of JWTs that name none. */
  readonly rights: readonly string[];
}

export interface ServiceConfig {
  readonly store: string;
  readonly host: string;
  readonly port: number;
  readonly apiKeys: string | null;
  readonly jwt: JwtConfig | null;
  readonly insecure: boolean;
  /** Host names to answer to without authentication; `*` is any. */
  readonly allowedHosts: readonly string[];
  readonly tls: { readonly cert: string; readonly key: string } | null;
  readonly trustProxy: readonly string[];
  readonly audit: string | null;
  /** How long `/readyz` is 503 before the service closes. */
  readonly drainMs: number;
  readonly logLevel: string;
  readonly limits: Limits;
  /** For every principal. */
  readonly principalLimits: PrincipalLimits;
  /** Notes for the operator: settings without effect, and missing ones. */
  readonly notes: readonly string[];
}

export interface ConfigSources {
  readonly flags?: Readonly<Partial<Record<SettingName, string>>>;
  readonly environment?: Environment;
  /** The text of the file: JSON with the names of the flags, `limits` and `principalLimits`. */
  readonly file?: string;
  /** The text of a file of properties of LockServiceCentral. Variables override them. */
  readonly properties?: string;
  /** The default store; called only if none is named. */
  readonly defaultStore: () => string;
}

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent'];
const PORT_MAX = 65_535;
const HOST = /^(?:\*|[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)$/;
/** Any of these, as a setting of Holdfast, makes issuer and audience required. */
const TOKENS = ['jwt-issuer', 'jwt-audience', 'jwt-jwks'] as const;
/** LockServiceCentral gives every valid JWT these rights. With settings of Holdfast, the default is no right. */
const CENTRAL_RIGHTS = 'lock:*';
const RIGHTS_NOT_SET =
  'jwt-rights is not set, so JWTs without the claim "holdfast" have no rights. Set it to their rights, or to none.';

export function configFrom({
  flags = {},
  environment = {},
  file,
  properties = '',
  defaultStore,
}: ConfigSources): ServiceConfig {
  const { values: written, limits, principalLimits } = readFile(file ?? '{}');
  const own = ownVariables(environment);
  const inFile = propertiesIn(properties);
  const central = centralVariables({ ...inFile.values, ...byVariable(environment) }, { ...own, ...flags });
  const ours: Values = { ...written, ...own, ...flags };
  const values: Values = { ...written, ...central.values, ...own, ...flags };
  for (const setting of SETTINGS) check(setting, values[setting.name]);
  const insecure = isTrue(values.insecure);
  const strictly = TOKENS.some((name) => ours[name] !== undefined);
  const jwt = jwtOf(values, strictly);
  if (insecure && (values['api-keys'] !== undefined || jwt !== null)) {
    throw new InvalidArgumentError(
      'insecure disables authentication, but API keys or JWTs are configured: remove one of the two.',
    );
  }
  const store = values.store ?? defaultStore();
  const host = values.host ?? '127.0.0.1';
  const port = Number(values.port ?? '8080');
  if (isOwnAddress(store, host, port)) {
    throw new InvalidArgumentError(
      `The store ${withoutSecrets(store)} is this service itself: name the store that keeps the locks. HOLDFAST_STORE may be set for clients of the service.`,
    );
  }
  return {
    ...{ store, host, port },
    apiKeys: values['api-keys'] ?? null,
    jwt,
    insecure,
    allowedHosts: partsOf(values['allowed-hosts']),
    tls: tlsOf(values),
    trustProxy: partsOf(values['trust-proxy']),
    audit: values.audit ?? null,
    drainMs: durationMs(values.drain ?? '0'),
    logLevel: values['log-level'] ?? 'info',
    limits: limitsOf(limits),
    principalLimits: principalLimitsOf(principalLimits),
    notes: [
      ...inFile.notes,
      ...central.notes,
      ...(jwt ? leftOpen(jwt) : []),
      ...(strictly && values['jwt-rights'] === undefined ? [RIGHTS_NOT_SET] : []),
    ],
  };
}

/** Uses the names of variables, so that a variable replaces its property in every spelling. Blank counts as not set. */
function byVariable(environment: Environment): Environment {
  const set = Object.entries(environment).filter(([, value]) => value?.trim());
  return Object.fromEntries(set.map(([name, value]) => [environmentName(name), value]));
}

type Shown = Readonly<Record<string, string | number | boolean | Limits | PrincipalLimits>>;

/**
 * The output of `--print-config`, with the names of the configuration file: the settings and the defaults. Passwords and
 * keys in URLs are hidden; the rest has no secrets.
 */
export function shownConfig(config: ServiceConfig): Shown {
  const { jwt, tls, limits, principalLimits } = config;
  const all = {
    store: withoutSecrets(config.store),
    host: config.host,
    port: config.port,
    'api-keys': config.apiKeys,
    'jwt-issuer': jwt?.issuer ?? null,
    'jwt-audience': jwt?.audience ?? null,
    'jwt-jwks': jwt?.jwks ? withoutSecrets(jwt.jwks) : null,
    'jwt-rights': jwt && (jwt.rights.join(',') || 'none'),
    insecure: config.insecure,
    'allowed-hosts': config.allowedHosts.join(',') || null,
    'tls-cert': tls?.cert ?? null,
    'tls-key': tls?.key ?? null,
    'trust-proxy': config.trustProxy.join(',') || null,
    audit: config.audit,
    drain: `${config.drainMs}ms`,
    'log-level': config.logLevel,
    ...{ limits, principalLimits },
  };
  return Object.fromEntries(
    Object.entries(all).flatMap(([name, value]) => (value === null ? [] : [[name, value]])),
  );
}

function check({ name, kind }: Setting, value: string | undefined): void {
  if (value === undefined) return;
  if (value.trim() === '') throw new InvalidArgumentError(`${name} is empty.`);
  if (kind === 'port' && !(/^\d{1,5}$/.test(value) && Number(value) <= PORT_MAX)) {
    throw new InvalidArgumentError(`${name} is "${value}", but has to be a number from 0 to ${PORT_MAX}.`);
  }
  if (kind === 'switch' && !/^(?:true|false)$/i.test(value)) {
    throw new InvalidArgumentError(`${name} is "${value}", but has to be true or false.`);
  }
  if (kind === 'rights') rightsOf(rightsIn(value));
  if (kind === 'proxies') proxiesOf(partsOf(value));
  if (kind === 'hosts' && !partsOf(value).every((part) => HOST.test(part))) {
    throw new InvalidArgumentError(
      `${name} is "${value}", but has to be host names without ports, comma-separated, or *.`,
    );
  }
  if (kind === 'duration' && Number.isNaN(durationMs(value))) {
    throw new InvalidArgumentError(
      `${name} is "${value}", but has to be a duration such as 500ms, 5s or 1m.`,
    );
  }
  if (kind === 'level' && !LEVELS.includes(value)) {
    throw new InvalidArgumentError(`${name} is "${value}", but has to be one of ${LEVELS.join(', ')}.`);
  }
}

function isTrue(value: string | undefined): boolean {
  return value?.toLowerCase() === 'true';
}

/** 0 needs no unit. */
function durationMs(text: string): number {
  return text === '0' ? 0 : Math.round(parseDuration(text));
}

function rightsIn(text: string): readonly string[] {
  return text === 'none' ? [] : partsOf(text);
}

function partsOf(text: string | undefined): readonly string[] {
  return text?.split(',').map((part) => part.trim()) ?? [];
}

/** `strictly`: for settings of Holdfast. Settings of LockServiceCentral may leave out the issuer or the audience. */
function jwtOf(values: Values, strictly: boolean): JwtConfig | null {
  const { 'jwt-issuer': issuer = null, 'jwt-audience': audience = null, 'jwt-jwks': jwks = null } = values;
  if (issuer === null && audience === null && jwks === null) {
    if (values['jwt-rights'] === undefined) return null;
    throw new InvalidArgumentError('jwt-rights is set, but jwt-issuer is missing.');
  }
  if (strictly && issuer === null) {
    throw new InvalidArgumentError('jwt-issuer is missing: JWTs of any issuer would be accepted.');
  }
  if (strictly && audience === null) {
    throw new InvalidArgumentError('jwt-audience is missing: JWTs for other services would be accepted.');
  }
  const rights = rightsIn(values['jwt-rights'] ?? (strictly ? 'none' : CENTRAL_RIGHTS));
  return { issuer, audience, jwks, rights };
}

/** Notes on missing settings that only LockServiceCentral's configuration may leave out. */
function leftOpen({ issuer, audience }: JwtConfig): readonly string[] {
  const notes: string[] = [];
  if (audience === null) notes.push('JWT_AUDIENCE is missing: JWTs for other services are accepted.');
  if (issuer === null)
    notes.push('JWT_ISSUER is missing: JWTs of any issuer whose key is in JWT_JWKS are accepted.');
  return notes;
}

function tlsOf({ 'tls-cert': cert, 'tls-key': key }: Values): ServiceConfig['tls'] {
  if (cert === undefined && key === undefined) return null;
  if (cert === undefined || key === undefined) {
    throw new InvalidArgumentError('tls-cert and tls-key belong together: one of them is missing.');
  }
  return { cert, key };
}

/** Removes the user information, up to the last @ (a password may have an unescaped one), and secret options. */
function withoutSecrets(url: string): string {
  return url
    .replace(/\/\/.*@/, '//***@')
    .replace(
      /([?&](?:key|[^=&#]*(?:pass|pwd|secret|token|api[-_]?key|nkey|creds|tlskey)[^=&#]*)=)[^&#]*/gi,
      '$1***',
    );
}
