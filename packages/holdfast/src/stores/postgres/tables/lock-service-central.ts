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
import { FREE_MS, OWN, OWN_SHAPE, type Row, type TableLayout } from './layout.js';

const COLUMNS = ['namespace', 'lock_name', 'owner', 'instance_id', 'lease_duration', 'expiry'];
/** The length of `owner`, in letters. */
const OWNER_MAX = 255;

export const lockServiceCentral: TableLayout = {
  name: CENTRAL_LAYOUT,
  table: 'locks',
  keyColumn: 'lock_id',
  columns: Object.fromEntries(COLUMNS.map((name) => [name, `r.${name}`])),
  replaced: {},
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
    return columnsOf(key, { ...record, owner: [...record.owner].slice(0, OWNER_MAX).join('') });
  },
  free: (expiredMs, key) => columnsOf(key, freeRecord(key, expiredMs, Math.ceil(expiredMs / 1_000))),
  deciding: ({ owner, instance_id, expiry }) => [owner, instance_id, expiry],
  read(row) {
    const lease = leaseIn(fieldsOf(row));
    return lease && holdOf(lease);
  },
  instances: {
    fieldsOf,
    rowOf: (key, fields) => ({ ...columnsOf(key, fields as unknown as CentralRecord), [OWN]: fields[OWN] }),
  },
};

function columnsOf(key: string, record: CentralRecord): Row {
  const { namespace, lockName: lock_name, owner, instanceId: instance_id, leaseDuration, expiry } = record;
  const name = { lock_id: centralIdOf(key), namespace, lock_name };
  return { ...name, owner, instance_id, lease_duration: leaseDuration, expiry };
}

/** The columns under the names that they have in other engines. */
function fieldsOf(row: Row): Fields {
  const { namespace, lock_name: lockName, owner, instance_id: instanceId, expiry } = row;
  return {
    namespace,
    lockName,
    owner,
    instanceId,
    leaseDuration: row.lease_duration,
    expiry,
    [OWN]: row[OWN],
  };
}
