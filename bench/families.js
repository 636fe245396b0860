/** Who is compared with whom, an engine each. */

/** @typedef {import('./types.d.ts').WorkloadName} WorkloadName */
/** @typedef {import('./types.d.ts').Family} Family */

/** Every lease is a record of its own there, and every renewal a write of its own: held leases share nothing. @type {readonly WorkloadName[]} */
const WITHOUT_BATCHES = ['held'];

/** Waiting, holding and hand-over are the store's behind the service. @type {readonly WorkloadName[]} */
const UNCONTENDED_ONLY = ['fresh', 'fresh-in-flight', 'contended', 'held', 'idle'];

/** Fresh keys cost the library the same as others there: what they leave behind is told of the stores themselves. @type {readonly WorkloadName[]} */
const REPEATED_KEYS_ONLY = ['fresh', 'fresh-in-flight'];

/** Nobody is told there: processes that wait look again, and the run with 16 of them in 4 shows that. @type {readonly WorkloadName[]} */
const POLLED = ['handover', ...WITHOUT_BATCHES, ...REPEATED_KEYS_ONLY];

/** Waiters of a table that other software has wait as those of MySQL do. @type {readonly WorkloadName[]} */
const TABLE_OF_OTHERS = ['idle', 'killed', ...POLLED];

/** @type {readonly WorkloadName[]} */
const PUSHED = [...WITHOUT_BATCHES, ...REPEATED_KEYS_ONLY];

/** What most families have. @type {Omit<Family, 'engine' | 'title' | 'subject'>} */
const USUAL = {
  peers: [],
  minimums: [],
  alone: [],
  patient: [],
  holding: [],
  idling: [],
  reach: 'network',
  without: [],
  emulator: false,
};

/** @param {Pick<Family, 'engine' | 'title'> & Partial<Family>} given @returns {Family} */
const family = (given) => ({ ...USUAL, subject: `holdfast-${given.engine}`, ...given });

/** @type {readonly Family[]} */
export const FAMILIES = [
  family({
    engine: 'memory',
    title: 'Memory',
    peers: ['verrou', 'async-mutex'],
    minimums: ['bare-map'],
    idling: ['verrou', 'async-mutex'],
    reach: 'process',
  }),
  family({
    engine: 'sqlite',
    title: 'SQLite',
    peers: ['proper-lockfile'],
    minimums: ['bare-sqlite'],
    holding: ['proper-lockfile'],
    idling: ['proper-lockfile'],
    reach: 'machine',
    without: REPEATED_KEYS_ONLY,
  }),
  family({
    engine: 'redis',
    title: 'Redis',
    peers: ['redlock-4', 'redlock-5', 'redis-semaphore', 'verrou-redis'],
    minimums: ['minimum-redis', 'bare-redis'],
    holding: ['redis-semaphore'],
    idling: ['verrou-redis'],
  }),
  family({
    engine: 'quorum',
    title: 'Quorum of three Redis servers',
    peers: ['redlock-4-quorum', 'redlock-5-quorum'],
    // Two processes that have a server each keep it until the ttl ends: it gives nothing back before it tries again.
    alone: ['redlock-5-quorum'],
    minimums: ['minimum-quorum'],
    without: PUSHED,
  }),
  family({
    engine: 'postgres',
    title: 'PostgreSQL',
    peers: ['verrou-knex', 'verrou-kysely'],
    minimums: ['minimum-postgres', 'bare-postgres'],
    idling: ['verrou-knex'],
  }),
  family({
    engine: 'distributed-locks',
    title: 'PostgreSQL, table distributed_locks',
    peers: ['functions-distributed-locks'],
    minimums: ['minimum-distributed-locks'],
    without: TABLE_OF_OTHERS,
  }),
  family({
    engine: 'lock-service-central',
    title: 'PostgreSQL, table of LockServiceCentral',
    peers: ['statements-lock-service-central'],
    minimums: ['minimum-lock-service-central'],
    without: TABLE_OF_OTHERS,
  }),
  family({
    engine: 'mysql',
    title: 'MySQL (MariaDB)',
    peers: ['verrou-mysql'],
    minimums: ['minimum-mysql'],
    idling: ['verrou-mysql'],
    without: POLLED,
  }),
  family({
    engine: 'dynamodb',
    title: 'DynamoDB (emulator)',
    peers: ['verrou-dynamodb', 'dynamodb-lock-client'],
    minimums: ['minimum-dynamodb'],
    patient: ['minimum-dynamodb'],
    idling: ['verrou-dynamodb'],
    without: POLLED,
    emulator: true,
  }),
  family({
    engine: 'firestore',
    title: 'Firestore (emulator)',
    minimums: ['minimum-firestore'],
    patient: ['minimum-firestore'],
    without: PUSHED,
    emulator: true,
  }),
  family({
    engine: 'nats',
    title: 'NATS',
    minimums: ['minimum-nats'],
    patient: ['minimum-nats'],
    without: PUSHED,
  }),
  family({
    engine: 'etcd',
    title: 'etcd',
    minimums: ['minimum-etcd'],
    patient: ['minimum-etcd'],
    without: PUSHED,
  }),
  family({
    engine: 'service',
    title: 'Service',
    subject: 'service-v2',
    minimums: ['bare-fastify', 'fastify-with-access'],
    reach: 'process',
    without: UNCONTENDED_ONLY,
  }),
  family({
    engine: 'redis-served',
    title: 'Service on Redis',
    subject: 'service-redis',
    reach: 'process',
    without: UNCONTENDED_ONLY,
  }),
  family({
    engine: 'postgres-served',
    title: 'Service on PostgreSQL',
    subject: 'service-postgres',
    reach: 'process',
    without: UNCONTENDED_ONLY,
  }),
  family({
    engine: 'http',
    title: 'HTTP store',
    minimums: ['minimum-http'],
    reach: 'process',
    without: UNCONTENDED_ONLY,
  }),
];

/** As it stands in a report. @param {string} contender */
export function nameOf(contender) {
  const family = FAMILIES.find(({ subject, peers, minimums }) =>
    [subject, ...peers, ...minimums].includes(contender),
  );
  return family?.emulator ? `${contender} (emulator)` : contender;
}
