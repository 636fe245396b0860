/** Settings from the environment: in our words, and in those of LockServiceCentral. */
import {
  type CentralSettings,
  centralSettings,
  centralStoreNames,
  type Environment,
} from '../v1/settings.js';
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

/**
 * What LockServiceCentral would understand. Where `ours` names a store, it does not matter which one that had; and what
 * it says of other settings that `ours` has is said not to count.
 */
export function centralVariables(
  environment: Environment,
  ours: Values,
): { readonly values: Values; readonly notes: readonly string[] } {
  const unused = ours.store === undefined ? [] : centralStoreNames(environment);
  const heard = Object.entries(environment).filter(([name]) => !unused.includes(name));
  const settings = centralSettings(Object.fromEntries(heard));
  const notes = [...(unused.length > 0 ? [`${unused.join(', ')}: ignored, because a store is named.`] : [])];
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
