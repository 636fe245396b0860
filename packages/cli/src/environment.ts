/** What is said in the environment and has no effect: mistyped variables, and a store that another setting outdoes. */

import { nearest } from './nearest.js';
import type { OptionName } from './options.js';
import { CENTRAL } from './session.js';

type Environment = { readonly [name: string]: string | undefined };

const PREFIX = 'HOLDFAST_';
/** Beside the settings of the service: the key for one, and what `run` tells its command. */
const OTHERS = ['API_KEY', 'KEY', 'TOKEN'];
/** Kubernetes sets these for a service whose name begins with holdfast. */
const OF_KUBERNETES = /_SERVICE_(?:HOST|PORT)(?:_|$)|_PORT_\d+_(?:TCP|UDP|SCTP)(?:_|$)/;
const PORT_OF_KUBERNETES = /^(?:tcp|udp|sctp):\/\//;

/**
 * `settings`: the options of the service that a variable may stand for. Other programs may have variables that begin like
 * ours, so those that look like none of ours are named only where `all` is asked for.
 */
export function mistypedVariables(
  environment: Environment,
  settings: readonly OptionName[],
  all: boolean,
): string[] {
  const known = [...settings.map((name) => name.replaceAll('-', '_').toUpperCase()), ...OTHERS];
  return Object.entries(environment).flatMap(([name, value = '']) => {
    if (!/^HOLDFAST_/i.test(name) || OF_KUBERNETES.test(name) || PORT_OF_KUBERNETES.test(value)) return [];
    if (known.some((word) => name === PREFIX + word)) return [];
    const word = name.slice(PREFIX.length).toUpperCase();
    const meant = nearest(word, known) ?? known.find((other) => word.startsWith(`${other}_`));
    if (meant === undefined && !all) return [];
    const question = meant === undefined ? '' : ` Did you mean ${PREFIX}${meant}?`;
    return [`${name} is no setting of Holdfast, and not used.${question}`];
  });
}

/** Where both name a store, ours counts: whoever moves from LockServiceCentral should know. */
export function outdoneStore(environment: Environment): string[] {
  if (!environment.HOLDFAST_STORE) return [];
  const names = Object.keys(environment).filter((name) => CENTRAL.test(name) && environment[name]?.trim());
  return names.length === 0 ? [] : [`${names.join(', ')}: not used, as HOLDFAST_STORE names the store.`];
}
