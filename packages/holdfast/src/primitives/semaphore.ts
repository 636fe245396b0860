/** Several holders at once: k permits of n. */
import type { Lease, Lockable, SharedOptions } from '../api.js';
import { checkOptions, OPTION_NAMES } from '../arguments.js';
import { checkKey } from '../protocol/names.js';
import { checkPermits } from '../queue/request.js';
import { acquireOne, type Context } from './single.js';
import { verbs } from './verbs.js';

const SHARED_OPTION_NAMES: ReadonlySet<string> = new Set([...OPTION_NAMES, 'permits']);

export function semaphore(
  context: Context,
  key: string,
  options: { readonly capacity: number },
): Lockable<Lease, SharedOptions> {
  checkKey(key);
  const { capacity } = checkOptions(options, ['capacity']);
  checkPermits(1, capacity);
  return verbs<Lease, SharedOptions>((given, waitMs) => {
    const { permits = 1 } = given ?? {};
    return acquireOne(context, key, given, checkPermits(permits, capacity), waitMs, SHARED_OPTION_NAMES);
  }, context.defaults.waitMs);
}
