/** Layouts of other software in PostgreSQL, for the option `layout` of `postgresStore` and `migrate`. */
import { sqlStore } from '../sql/sql-store.js';
import type { ForeignTable, PostgresLayout } from './layout.js';
import { distributedLocks as distributedLocksTable } from './tables/distributed-locks.js';
import type { TableLayout } from './tables/layout.js';
import { lockServiceCentral as lockServiceCentralTable } from './tables/lock-service-central.js';
import { tableScript } from './tables/migration.js';
import { RowTable } from './tables/row-table.js';

export type { PostgresLayout } from './layout.js';

/** The table `distributed_locks` of applications with functions such as `acquire_lock`. */
export const distributedLocks: PostgresLayout = foreignTable(distributedLocksTable);

/** The table `locks` of LockServiceCentral. */
export const lockServiceCentral: PostgresLayout = foreignTable(lockServiceCentralTable);

function foreignTable(layout: TableLayout): ForeignTable {
  const { name, table } = layout;
  return {
    store: 'postgres',
    name,
    table,
    storeOn: (database, at) =>
      sqlStore(new RowTable(database, { ...at, layout }), {
        name: 'postgres',
        title: 'PostgreSQL',
        queue: false,
      }),
    script: (at, foundSetting) => tableScript({ ...at, layout }, foundSetting),
  };
}
