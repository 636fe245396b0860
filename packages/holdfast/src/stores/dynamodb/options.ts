/** The options, checked: the table, and the layout of its items. */
import { InvalidArgumentError } from '../../protocol/index.js';
import { checkOptionNames } from '../../protocol/option-names.js';
import { checkLayout } from '../clients/layout.js';
import type { DynamodbLayout, ForeignLayout, Layout } from './layout.js';
import { nativeLayout, RESERVED } from './native-layout.js';

/** A name, or the ARN of a table in another account. */
const TABLE = /^(arn:[^\s]{10,1000}|[A-Za-z0-9_.-]{3,255})$/;

/** Where the locks are: the table, and the names of its attributes. */
export interface DynamodbTableOptions {
  /** Default `holdfast`. */
  readonly table?: string;
  /** The table's partition key, of type S. Default `key`. */
  readonly partitionKey?: string;
  /** The table's sort key, where it has one: its name, and its value in every lock. Default none. */
  readonly sortKey?: { readonly name: string; readonly value: string };
  /** The attribute of the table's time to live. Default `ttl`. */
  readonly ttlAttribute?: string;
  /**
   * Shares locks with other software, in its items: a layout of `holdfast/dynamodb/layouts`, which has attribute names of
   * its own. Default none.
   */
  readonly layout?: DynamodbLayout;
}

/** Options of `dynamodbStore`. */
export interface DynamodbStoreOptions extends DynamodbTableOptions {
  /**
   * Keep a queue of waiters in the record: first come, first served, across processes. Default false: queueing is a
   * write, and writes cost money.
   */
  readonly queue?: boolean;
}

export interface Place {
  readonly table: string;
  readonly layout: Layout;
}

const NAMES = ['partitionKey', 'sortKey', 'ttlAttribute'] as const;

/** `queue` belongs to the store; `createTable` accepts and ignores it, so that both can have the same options. */
export function placeOf(options: DynamodbStoreOptions): Place & { readonly queue: boolean } {
  checkOptionNames(options, ['table', ...NAMES, 'layout', 'queue']);
  const { table = 'holdfast', queue = false } = options;
  if (typeof table !== 'string' || !TABLE.test(table)) {
    throw new InvalidArgumentError(
      'The table has to be a name of 3 to 255 letters, digits, dots, dashes or underscores, or the ARN of a table.',
    );
  }
  if (typeof queue !== 'boolean') throw new InvalidArgumentError('queue has to be true or false.');
  const layout = checkLayout<ForeignLayout>(options.layout, 'dynamodb');
  if (!layout) return { table, layout: nativeOf(options), queue };
  const extra = NAMES.find((name) => options[name] !== undefined);
  if (extra !== undefined) {
    throw new InvalidArgumentError(`${extra} cannot be given with a layout, which has its own names.`);
  }
  if (queue) throw new InvalidArgumentError(`The items of the layout "${layout.name}" cannot store a queue.`);
  return { table, layout, queue };
}

function nativeOf({ partitionKey = 'key', sortKey, ttlAttribute = 'ttl' }: DynamodbTableOptions): Layout {
  const names = [
    checkName('partitionKey', partitionKey),
    ...(sortKey ? [checkName('sortKey.name', sortKey.name)] : []),
    checkName('ttlAttribute', ttlAttribute),
  ];
  for (const name of names) {
    if (names.indexOf(name) === names.lastIndexOf(name) && !RESERVED.includes(name)) continue;
    throw new InvalidArgumentError(
      `The attribute "${name}" would have two meanings in a lock. partitionKey, sortKey and ttlAttribute have to ` +
        `differ from each other, and from: ${RESERVED.join(', ')}.`,
    );
  }
  if (sortKey && (typeof sortKey.value !== 'string' || sortKey.value === '')) {
    throw new InvalidArgumentError(
      'sortKey.value has to be a text, the same for every lock, such as "LOCK".',
    );
  }
  return nativeLayout({ partitionKey, sortKey: sortKey ?? null, ttlAttribute });
}

function checkName(option: string, name: unknown): string {
  if (typeof name === 'string' && name.length >= 1 && name.length <= 255) return name;
  throw new InvalidArgumentError(`${option} has to be the name of an attribute, 1 to 255 characters.`);
}
