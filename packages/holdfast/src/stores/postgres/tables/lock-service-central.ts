/**
 * The layout of github.com/UnitVectorY-Labs/LockServiceCentral in PostgreSQL:
 *
 *   lock_id                varchar(512)  primary key, namespace:lockName
 *   namespace, lock_name   varchar(255)
 *   owner                  varchar(255)  the signed-in user
 *   instance_id            varchar(255)  a secret of the client: the same owner and instance may acquire the lock again
 *   lease_duration         bigint        seconds, with all renewals
 *   expiry                 bigint        epoch seconds. Taken when absent or `expiry < now()`, in rounded seconds
 *
 * The service writes `expiry` by its own clock, and compares it by the server's. So locks of ours are written without an
 * allowance, and locks of the service count a second longer. Our column stays when the service takes the lock.
 */
import { CLOCKS_APART_MS } from '../../compare-and-swap/foreign.js';
import {
  CENTRAL_LAYOUT,
  centralPartsIn,
  centralPartsOf,
  secretOf,
} from '../../compare-and-swap/lock-service-central.js';
import { boundedMs, FREE, FREE_MS, OWN_SHAPE, type Row, type TableLayout } from './layout.js';

const COLUMNS = ['namespace', 'lock_name', 'owner', 'instance_id', 'lease_duration', 'expiry'];
/** The length of `owner`, in letters. */
const OWNER_MAX = 255;
const FREE_OWNER = 'holdfast';

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
  freeSql: `r.owner = '${FREE_OWNER}' AND r.instance_id = '${FREE}' AND r.lease_duration = 0`,
  expendableSql: `r.expiry < floor(extract(epoch FROM clock_timestamp()))::bigint - ${FREE_MS / 1_000}`,
  isKey: (key) => centralPartsIn(key) !== null,
  nameOf: (key) => centralPartsOf(key).join(':'),
  held(occupant, key) {
    const { owner, acquiredAt, expiresAt } = occupant;
    const seconds = Math.ceil((expiresAt - acquiredAt) / 1_000);
    const shown = [...owner].slice(0, OWNER_MAX).join('');
    return columnsOf(key, shown, secretOf(occupant), seconds, Math.ceil(expiresAt / 1_000));
  },
  free: (expiredMs, key) => columnsOf(key, FREE_OWNER, FREE, 0, Math.ceil(expiredMs / 1_000)),
  deciding: ({ owner, instance_id, expiry }) => [owner, instance_id, expiry],
  read({ owner, instance_id, lease_duration, expiry }) {
    if (typeof owner !== 'string' || typeof instance_id !== 'string' || typeof expiry !== 'number')
      return null;
    const seconds = typeof lease_duration === 'number' ? lease_duration : 0;
    return {
      owner,
      acquiredAt: boundedMs((expiry - seconds) * 1_000),
      // The lock lasts through the second of its expiry.
      expiresAt: boundedMs((expiry + 1) * 1_000 + CLOCKS_APART_MS),
    };
  },
  instances: true,
};

function columnsOf(key: string, owner: string, instance: string, seconds: number, expiry: number): Row {
  const [namespace, lock_name] = centralPartsOf(key);
  const name = { lock_id: `${namespace}:${lock_name}`, namespace, lock_name };
  return { ...name, owner, instance_id: instance, lease_duration: seconds, expiry };
}
