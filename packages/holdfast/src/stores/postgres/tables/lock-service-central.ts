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
import { createHash } from 'node:crypto';
import { type Holder, type Rest, UnsupportedError } from '../../../protocol/index.js';
import { CLOCKS_APART_MS } from '../../compare-and-swap/foreign.js';
import { boundedMs, FREE, FREE_MS, OWN_PREFIX, type Row, type TableLayout } from './layout.js';

const NAME = 'lock-service-central';
/** The namespaces and names that the service accepts. */
const PART = /^[A-Za-z0-9_-]{3,64}$/;
/** The length of `owner`, in letters. */
const OWNER_MAX = 255;
const FREE_OWNER = 'holdfast';

export const lockServiceCentral: TableLayout = {
  name: NAME,
  table: 'locks',
  keyColumn: 'lock_id',
  columns: Object.fromEntries(
    ['namespace', 'lock_name', 'owner', 'instance_id', 'lease_duration', 'expiry'].map((name) => [
      name,
      `r.${name}`,
    ]),
  ),
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
  ownSql: `r.instance_id LIKE '${OWN_PREFIX}%'`,
  freeSql: `r.owner = '${FREE_OWNER}' AND r.instance_id = '${FREE}' AND r.lease_duration = 0`,
  expendableSql: `r.expiry < floor(extract(epoch FROM clock_timestamp()))::bigint - ${FREE_MS / 1_000}`,
  isKey: (key) => partsIn(key) !== null,
  nameOf: (key) => partsOf(key).join(':'),
  held(occupant, key) {
    const { owner, acquiredAt, expiresAt } = occupant;
    const seconds = Math.ceil((expiresAt - acquiredAt) / 1_000);
    const shown = [...owner].slice(0, OWNER_MAX).join('');
    return columnsOf(key, shown, instanceOf(occupant), seconds, Math.ceil(expiresAt / 1_000));
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

function columnsOf(
  key: string,
  owner: string,
  instance_id: string,
  lease_duration: number,
  expiry: number,
): Row {
  const [namespace, lock_name] = partsOf(key);
  return {
    lock_id: `${namespace}:${lock_name}`,
    namespace,
    lock_name,
    owner,
    instance_id,
    lease_duration,
    expiry,
  };
}

/** A secret that does not reveal the hold, which is a secret too. */
function instanceOf(occupant: Holder | Rest): string {
  if (!('hold' in occupant)) return `${OWN_PREFIX}rest-${occupant.token}`;
  const { process, number: count } = occupant.hold;
  return OWN_PREFIX + createHash('sha256').update(`${process}/${count}`).digest('hex').slice(0, 40);
}

function partsIn(key: string): readonly [namespace: string, lockName: string] | null {
  const slash = key.indexOf('/');
  const [namespace, name] = [key.slice(0, slash), key.slice(slash + 1)];
  return PART.test(namespace) && PART.test(name) ? [namespace, name] : null;
}

function partsOf(key: string): readonly [namespace: string, lockName: string] {
  const parts = partsIn(key);
  if (parts) return parts;
  throw new UnsupportedError(
    `The layout ${NAME} cannot store the lock "${key}": its namespaces and names have 3 to 64 letters, digits, dashes ` +
      'and underscores.',
    { key },
  );
}
