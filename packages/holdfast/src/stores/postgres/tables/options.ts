/** The options of a layout, checked: the table, and how locks are stored in it. */
import { InvalidArgumentError } from '../../../protocol/index.js';
import { checkSchema } from '../sql/names.js';
import { distributedLocks } from './distributed-locks.js';
import type { TableLayout } from './layout.js';
import { lockServiceCentral } from './lock-service-central.js';
import type { Place } from './row-sql.js';

/** Other software whose tables the store can use. */
export type LayoutName = 'distributed-locks' | 'lock-service-central';

const LAYOUTS: ReadonlyMap<unknown, TableLayout> = new Map(
  [distributedLocks, lockServiceCentral].map((layout) => [layout.name, layout]),
);
const SCHEMA = 'public';

export interface TableOptions {
  readonly layout?: LayoutName;
  readonly schema?: string;
  readonly table?: string;
}

/** Null without a layout: then the locks are in Holdfast's own schema. */
export function placeOf({ layout: name, schema = SCHEMA, table }: TableOptions): Place | null {
  if (name === undefined) {
    if (table === undefined) return null;
    throw new InvalidArgumentError('table can only be given with a layout. Without one, name the schema.');
  }
  const layout = LAYOUTS.get(name);
  if (!layout) {
    throw new InvalidArgumentError(
      `There is no layout "${String(name)}" for PostgreSQL. Layouts: ${[...LAYOUTS.keys()].join(', ')}.`,
    );
  }
  return { layout, schema: checkSchema(schema), table: checkSchema(table ?? layout.table, 'table') };
}
