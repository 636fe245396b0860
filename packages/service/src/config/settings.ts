/** The table of settings: name, environment variable and kind. Reads them from the environment and from a JSON file. */
import { InvalidArgumentError } from 'holdfast';
import type { PrincipalLimits } from '../auth/allowance.js';
import type { Limits } from '../http/limits.js';
import type { Environment } from '../v1/setting-values.js';
import { type CentralSettings, centralSettings, centralStoreNames } from '../v1/settings.js';

export interface Setting {
  /** `--name` on the command line, `"name"` in the file. */
  readonly name: string;
  readonly variable: string;
  readonly kind: 'text' | 'port' | 'switch' | 'level' | 'rights' | 'proxies' | 'hosts' | 'duration';
}

export const SETTINGS = [
  { name: 'store', variable: 'HOLDFAST_STORE', kind: 'text' },
  { name: 'host', variable: 'HOLDFAST_HOST', kind: 'text' },
  { name: 'port', variable: 'HOLDFAST_PORT', kind: 'port' },
  { name: 'api-keys', variable: 'HOLDFAST_API_KEYS', kind: 'text' },
  { name: 'jwt-issuer', variable: 'HOLDFAST_JWT_ISSUER', kind: 'text' },
  { name: 'jwt-audience', variable: 'HOLDFAST_JWT_AUDIENCE', kind: 'text' },
  { name: 'jwt-jwks', variable: 'HOLDFAST_JWT_JWKS', kind: 'text' },
  { name: 'jwt-rights', variable: 'HOLDFAST_JWT_RIGHTS', kind: 'rights' },
  { name: 'insecure', variable: 'HOLDFAST_INSECURE', kind: 'switch' },
  { name: 'allowed-hosts', variable: 'HOLDFAST_ALLOWED_HOSTS', kind: 'hosts' },
  { name: 'tls-cert', variable: 'HOLDFAST_TLS_CERT', kind: 'text' },
  { name: 'tls-key', variable: 'HOLDFAST_TLS_KEY', kind: 'text' },
  { name: 'trust-proxy', variable: 'HOLDFAST_TRUST_PROXY', kind: 'proxies' },
  { name: 'audit', variable: 'HOLDFAST_AUDIT', kind: 'text' },
  { name: 'drain', variable: 'HOLDFAST_DRAIN', kind: 'duration' },
  { name: 'log-level', variable: 'HOLDFAST_LOG_LEVEL', kind: 'level' },
] as const satisfies readonly Setting[];

export type SettingName = (typeof SETTINGS)[number]['name'];

/** The values as written. They are checked before they are used. */
export type Values = Partial<Record<SettingName, string>>;

/** An empty variable counts as not set. */
export function ownVariables(environment: Environment): Values {
  const values: Values = {};
  for (const { name, variable } of SETTINGS) {
    const value = environment[variable];
    if (value !== undefined && value !== '') values[name] = value;
  }
  return values;
}

/**
 * The settings of LockServiceCentral in the environment. Its store is ignored if `ours` names one; a note says so, and
 * names every other setting that `ours` overrides.
 */
export function centralVariables(
  environment: Environment,
  ours: Values,
): { readonly values: Values; readonly notes: readonly string[] } {
  const unused = ours.store === undefined ? [] : centralStoreNames(environment);
  const heard = Object.entries(environment).filter(([name]) => !unused.includes(name));
  const settings = centralSettings(Object.fromEntries(heard));
  const notes = unused.length > 0 ? [`${unused.join(', ')}: ignored, because a store is named.`] : [];
  if (settings === null) return { values: {}, notes };
  const values = valuesOf(settings);
  for (const { name } of SETTINGS) {
    const [own, central] = [ours[name], values[name]];
    if (own === undefined || central === undefined || own === central) continue;
    notes.push(`The setting "${name}" of Holdfast is used, not that of LockServiceCentral.`);
  }
  return { values, notes: [...settings.notes, ...notes] };
}

function valuesOf({ store, auth, address, port }: CentralSettings): Values {
  const values: Values = {};
  if (store !== null) values.store = store;
  if (address !== null) values.host = address;
  if (port !== null) values.port = port;
  if (auth.kind === 'disabled') values.insecure = 'true';
  if (auth.kind === 'jwt') {
    if (auth.issuer !== undefined) values['jwt-issuer'] = auth.issuer;
    if (auth.audience !== undefined) values['jwt-audience'] = auth.audience;
    if (auth.jwks !== undefined) values['jwt-jwks'] = auth.jwks;
  }
  return values;
}

interface Written {
  readonly values: Values;
  readonly limits: Partial<Limits>;
  readonly principalLimits: Partial<PrincipalLimits>;
}

export function readFile(text: string): Written {
  const { limits, principalLimits, ...rest } = objectIn(text);
  const values: Values = {};
  for (const [name, value] of Object.entries(rest)) {
    const setting = SETTINGS.find((each) => each.name === name);
    if (!setting) {
      throw new InvalidArgumentError(
        `The configuration file has "${name}", which is not a setting. Settings are: ` +
          `${SETTINGS.map((each) => each.name).join(', ')}, limits, principalLimits.`,
      );
    }
    if (!['string', 'number', 'boolean'].includes(typeof value)) {
      throw new InvalidArgumentError(
        `"${name}" in the configuration file has to be a text, a number or a boolean.`,
      );
    }
    values[setting.name] = String(value);
  }
  return {
    values,
    limits: groupOf('limits', limits),
    principalLimits: groupOf('principalLimits', principalLimits),
  };
}

/** The limits themselves are checked by `limitsOf` and `principalLimitsOf`. */
function groupOf(name: string, value: unknown = {}): Readonly<Record<string, number>> {
  if (isObject(value)) return value as Record<string, number>;
  throw new InvalidArgumentError(`"${name}" in the configuration file has to be an object.`);
}

function objectIn(text: string): Record<string, unknown> {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch (cause) {
    throw new InvalidArgumentError('The configuration file is not JSON.', { cause });
  }
  if (isObject(read)) return read;
  throw new InvalidArgumentError('The configuration file has to be one JSON object.');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
