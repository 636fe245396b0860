/**
 * LockServiceCentral's records (compare-and-swap/lock-service-central.ts) in PostgreSQL:
 *
 *   lock_id                                         varchar(512)  primary key, namespace:lockName
 *   namespace, lock_name, owner, instance_id        varchar(255)
 *   lease_duration, expiry                          bigint. Taken when `expiry < now()`, in rounded seconds
 *
 * The service writes `expiry` by its own clock, and compares it by the server's. So locks of ours are written without an
 * allowance, and locks of the service count a second longer. Our column stays when the service takes the lock.
 */
import {
  CENTRAL_LAYOUT,
  type CentralRecord,
  centralIdOf,
  centralKeyIn,
  FREE_INSTANCE,
  FREE_OWNER,
  freeRecord,
  heldRecord,
  holdOf,
  leaseIn,
} from '../../compare-and-swap/lock-service-central.js';
import type { Fields } from '../../compare-and-swap/records.js';
import { FREE_MS, OWN, OWN_SHAPE, plainColumn, type Row, type TableLayout } from './layout.js';

const COLUMNS = ['namespace', 'lock_name', 'owner', 'instance_id', 'lease_duration', 'expiry'];
/** The length of `owner`, in letters. */
const OWNER_MAX = 255;

export const lockServiceCentral: TableLayout = {
  name: CENTRAL_LAYOUT,
  table: 'locks',
  keyColumn: 'lock_id',
  columns: Object.fromEntries(COLUMNS.map((name) => [name, plainColumn(name)])),
  create: (table) => `CREATE TABLE IF NOT EXISTS ${table} (
  lock_id varchar(512) PRIMARY KEY,
  namespace varchar(255) NOT NULL,
  lock_name varchar(255) NOT NULL,
  owner varchar(255) NOT NULL,
  instance_id varchar(255) NOT NULL,
  lease_duration bigint NOT NULL,
  expiry bigint NOT NULL
);
CREATE INDEX IF NOT EXISTS idx_locks_expiry ON ${table} (expiry);`,
  keySql: "replace(r.lock_id, ':', '/')",
  ownSql: `r.instance_id ~ '^${OWN_SHAPE}$'`,
  freeSql: `r.owner = '${FREE_OWNER}' AND r.instance_id = '${FREE_INSTANCE}' AND r.lease_duration = 0`,
  expendableSql: `r.expiry < floor(extract(epoch FROM clock_timestamp()))::bigint - ${FREE_MS / 1_000}`,
  isKey: (key) => centralKeyIn(key.replace('/', ':')) !== null,
  nameOf: centralIdOf,
  held(occupant, key) {
    const record = heldRecord(key, occupant, 0);
    const { owner } = record;
    if (owner.length <= OWNER_MAX) return columnsOf(record);
    return columnsOf({ ...record, owner: [...owner].slice(0, OWNER_MAX).join('') });
  },
  free: (expiredMs, key) => columnsOf(freeRecord(key, expiredMs, Math.ceil(expiredMs / 1_000))),
  deciding: ({ owner, instance_id, expiry }) => [owner, instance_id, numberIn(expiry)],
  read(row) {
    const lease = leaseIn(fieldsOf(row));
    return lease && holdOf(lease);
  },
  instances: {
    fieldsOf,
    rowOf(fields) {
      const { [OWN]: own } = fields;
      const columns = columnsOf(fields as unknown as CentralRecord);
      return { ...columns, [OWN]: typeof own === 'string' ? own : null };
    },
  },
};

function columnsOf(record: CentralRecord): Row {
  const { namespace, lockName: lock_name, owner, instanceId: instance_id, leaseDuration, expiry } = record;
  const lease_duration = String(leaseDuration);
  return { namespace, lock_name, owner, instance_id, lease_duration, expiry: String(expiry) };
}

/** Null for none, and for what JSON could not have as a number. */
function numberIn(text: string | null | undefined): number | null {
  const number = Number(text ?? Number.NaN);
  return Number.isFinite(number) ? number : null;
}

/** The columns under the names that they have in other engines. */
function fieldsOf(row: Row): Fields {
  const { namespace, lock_name: lockName, owner, instance_id: instanceId } = row;
  return {
    namespace,
    lockName,
    owner,
    instanceId,
    leaseDuration: numberIn(row.lease_duration),
    expiry: numberIn(row.expiry),
    [OWN]: row[OWN],
  };
}
