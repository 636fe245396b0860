/** Several holders at once: k permits of n. */
import type { Lease, Lockable, SharedOptions } from '../api.js';
import { OPTION_NAMES } from '../arguments.js';
import { checkKey } from '../protocol/names.js';
import { checkOptionNames } from '../protocol/option-names.js';
import { checkPermits, type Permits } from '../queue/request.js';
import { acquireOne, type Context, outerOf } from './single.js';
import { verbs } from './verbs.js';

const SHARED_OPTION_NAMES: ReadonlySet<string> = new Set([...OPTION_NAMES, 'permits']);

export function semaphore(
  context: Context,
  key: string,
  options: { readonly capacity: number },
): Lockable<Lease, SharedOptions> {
  const name = checkKey(key);
  const { capacity } = checkOptionNames(options, ['capacity']);
  checkPermits(1, capacity);
  const permitsOf = ({ permits = 1 }: SharedOptions = {}): Permits => checkPermits(permits, capacity);
  return verbs<Lease, SharedOptions>(
    (given, waitMs) => acquireOne(context, name, given, permitsOf(given), waitMs, SHARED_OPTION_NAMES),
    (given) => outerOf(context, name, given, permitsOf(given), SHARED_OPTION_NAMES),
    context.defaults.waitMs,
  );
}
