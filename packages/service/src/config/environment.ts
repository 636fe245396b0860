/** Settings from the environment: in our words, and in those of LockServiceCentral. */
import { centralSettings, type Environment } from '../v1/settings.js';
import { SETTINGS, type Values } from './settings.js';

export type { Environment } from '../v1/settings.js';

/** An empty variable counts as not set. */
export function ownVariables(environment: Environment): Values {
  const values: Values = {};
  for (const { name, variable } of SETTINGS) {
    const value = environment[variable];
    if (value !== undefined && value !== '') values[name] = value;
  }
  return values;
}

/** What LockServiceCentral would understand. Where a store is named, it does not matter which one that had. */
export function centralVariables(
  environment: Environment,
  store: string | undefined,
): { readonly values: Values; readonly notes: readonly string[] } {
  const isStore = (name: string): boolean => name.startsWith('LOCKER_') || name === 'SPRING_PROFILES_ACTIVE';
  const heard = Object.entries(environment).filter(([name]) => store === undefined || !isStore(name));
  const settings = centralSettings(Object.fromEntries(heard));
  if (settings === null) return { values: {}, notes: [] };
  const { auth } = settings;
  const values: Values = {};
  if (settings.store !== null) values.store = settings.store;
  if (auth.kind === 'disabled') values.insecure = 'true';
  if (auth.kind === 'jwt') {
    if (auth.issuer !== undefined) values['jwt-issuer'] = auth.issuer;
    if (auth.audience !== undefined) values['jwt-audience'] = auth.audience;
    if (auth.jwks !== undefined) values['jwt-jwks'] = auth.jwks;
  }
  return { values, notes: settings.notes };
}
