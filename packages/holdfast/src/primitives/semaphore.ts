/** So many at once: k permits of n. */
import type { Lease, Lockable, SharedOptions } from '../api.js';
import { checkKey, checkOptions, checkWants, OPTION_NAMES } from '../arguments.js';
import { acquireOne, type Context } from './single.js';
import { verbs } from './verbs.js';

const SHARED_OPTION_NAMES = [...OPTION_NAMES, 'permits'];

export function semaphore(
  context: Context,
  key: string,
  options: { readonly capacity: number },
): Lockable<Lease, SharedOptions> {
  checkKey(key);
  const { capacity } = checkOptions(options, ['capacity']);
  checkWants(1, capacity);
  return verbs<Lease, SharedOptions>((given, waitMs) => {
    const { permits = 1 } = given ?? {};
    return acquireOne(context, key, given, checkWants(permits, capacity), waitMs, SHARED_OPTION_NAMES);
  }, context.defaults.waitMs);
}
