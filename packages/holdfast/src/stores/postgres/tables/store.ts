/**
 * Locks in a table of PostgreSQL that other software has.
 *
 * Layout: layout.ts, and one file per software. Atomic: every change is one statement, on the condition that the row is
 * as it was seen (row-table.ts). Clock: the server's, estimated from the time in every reply. A lost reply: the connection
 * broke after the commit; the core repeats the command with the same hold. There are no wake-ups: waiters poll.
 */
import type { Store } from '../../../protocol/index.js';
import { sqlStore } from '../../sql/sql-store.js';
import type { Database } from '../clients.js';
import type { Place } from './row-sql.js';
import { RowTable } from './row-table.js';

export function tableStore(database: Database, place: Place): Store {
  return sqlStore(new RowTable(database, place), { name: 'postgres', title: 'PostgreSQL', queue: false });
}
