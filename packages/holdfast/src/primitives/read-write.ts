/** Many readers or one writer: a reader takes one of all permits, a writer all of them. */
import type { AcquireOptions, Lease, Lockable, ReadWrite } from '../api.js';
import { READ_WRITE_CAPACITY } from '../protocol/constants.js';
import { checkKey } from '../protocol/names.js';
import { acquireOne, type Context, outerOf } from './single.js';
import { verbs } from './verbs.js';

export function readWrite(context: Context, key: string): ReadWrite {
  checkKey(key);
  const taking = (count: number): Lockable<Lease> => {
    const permits = { permits: count, capacity: READ_WRITE_CAPACITY };
    return verbs<Lease, AcquireOptions>(
      (options, waitMs) => acquireOne(context, key, options, permits, waitMs),
      () => outerOf(context, key, permits),
      context.defaults.waitMs,
    );
  };
  return { read: taking(1), write: taking(READ_WRITE_CAPACITY) };
}
