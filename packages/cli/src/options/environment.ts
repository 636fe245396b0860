/** Warns of environment variables without effect: mistyped ones, and a store that another variable overrides. */
import { CENTRAL } from '../session.js';
import { nearest } from './nearest.js';
import type { OptionName } from './options.js';

const PREFIX = 'HOLDFAST_';
/**
 * Known variables besides the settings of the service: its API key, the lease of `acquire`, and those that `run` sets.
 */
const OTHERS = ['API_KEY', 'HANDOFF', 'LOCK', 'TOKEN'];
/** Kubernetes sets these for a service whose name begins with holdfast. */
const OF_KUBERNETES = /_SERVICE_(?:HOST|PORT)(?:_|$)|_PORT_\d+_(?:TCP|UDP|SCTP)(?:_|$)/;
const PORT_OF_KUBERNETES = /^(?:tcp|udp|sctp):\/\//;

/**
 * `settings`: the options of the service that may come from a variable. Other programs may use the same prefix, so a
 * variable that resembles none of ours is reported only with `all`.
 */
export function mistypedVariables(settings: readonly OptionName[], all: boolean): string[] {
  const known = [...settings.map((name) => name.replaceAll('-', '_').toUpperCase()), ...OTHERS];
  return Object.entries(process.env).flatMap(([name, value = '']) => {
    if (!/^HOLDFAST_/i.test(name) || OF_KUBERNETES.test(name) || PORT_OF_KUBERNETES.test(value)) return [];
    if (known.some((word) => name === PREFIX + word)) return [];
    const word = name.slice(PREFIX.length).toUpperCase();
    const meant = nearest(word, known) ?? known.find((other) => word.startsWith(`${other}_`));
    if (meant === undefined && !all) return [];
    const question = meant === undefined ? '' : ` Did you mean ${PREFIX}${meant}?`;
    return [`${name} is not a setting of Holdfast, and is ignored.${question}`];
  });
}

/** Warns that HOLDFAST_STORE wins if both name a store, for users who move from LockServiceCentral. */
export function overriddenStore(): string[] {
  if (!process.env.HOLDFAST_STORE) return [];
  const names = Object.keys(process.env).filter((name) => CENTRAL.test(name) && process.env[name]?.trim());
  return names.length === 0 ? [] : [`${names.join(', ')}: ignored, because HOLDFAST_STORE names the store.`];
}
