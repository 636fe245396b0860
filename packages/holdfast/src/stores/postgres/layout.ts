/** The option `layout` of PostgreSQL, checked: the table of other software. The layouts themselves are in layouts.ts. */
import { InvalidArgumentError, type Store } from '../../protocol/index.js';
import { checkLayout } from '../clients/layout.js';
import type { Database } from './clients.js';
import { checkSchema } from './sql/names.js';

/** Other software whose table the store can use. `holdfast/postgres/layouts` exports all layouts. */
export interface PostgresLayout {
  readonly store: 'postgres';
  /** As in URLs: `?layout=distributed-locks`. */
  readonly name: string;
}

export interface TableName {
  readonly schema: string;
  readonly table: string;
}

/** The part of a layout that store and migration need. */
export interface ForeignTable extends PostgresLayout {
  /** The table's usual name. */
  readonly table: string;
  storeOn(database: Database, at: TableName): Store;
  /** The migration. It writes into this setting of the transaction whether the column was there. */
  script(at: TableName, foundSetting: string): string;
}

export interface Place extends TableName {
  readonly layout: ForeignTable;
}

const SCHEMA = 'public';

export interface TableOptions {
  readonly layout?: PostgresLayout;
  readonly schema?: string;
  readonly table?: string;
}

/** Null without a layout, when the locks are in Holdfast's own schema. */
export function placeOf({ layout: given, schema = SCHEMA, table }: TableOptions): Place | null {
  const layout = checkLayout<ForeignTable>(given, 'postgres');
  if (layout)
    return { layout, schema: checkSchema(schema), table: checkSchema(table ?? layout.table, 'table') };
  if (table === undefined) return null;
  throw new InvalidArgumentError('table can only be given with a layout. Without one, name the schema.');
}
