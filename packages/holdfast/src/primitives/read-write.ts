/** Many readers or one writer: a reader takes one of all permits, a writer all of them. */
import type { ReadWrite } from '../api.js';
import { READ_WRITE_CAPACITY } from '../protocol/constants.js';
import { checkKey } from '../protocol/names.js';
import { type Context, lockable } from './single.js';

export function readWrite(context: Context, key: string): ReadWrite {
  const name = checkKey(key);
  return {
    read: lockable(context, name, { permits: 1, capacity: READ_WRITE_CAPACITY }),
    write: lockable(context, name, { permits: READ_WRITE_CAPACITY, capacity: READ_WRITE_CAPACITY }),
  };
}
