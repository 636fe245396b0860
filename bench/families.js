/** Who is compared with whom, an engine each. */

/** @typedef {import('./types.d.ts').WorkloadName} WorkloadName */
/** @typedef {import('./types.d.ts').Family} Family */

/** Every lease is a record of its own there, and every renewal a write of its own: held leases share nothing. @type {readonly WorkloadName[]} */
const WITHOUT_BATCHES = ['held'];

/** Waiting, holding and hand-over are the store's behind the service. @type {readonly WorkloadName[]} */
const UNCONTENDED_ONLY = ['fresh', 'fresh-in-flight', 'contended', 'held', 'idle'];

/** Fresh keys cost the library the same as others there: what they leave behind is told of the stores themselves. @type {readonly WorkloadName[]} */
const REPEATED_KEYS_ONLY = ['fresh', 'fresh-in-flight'];

/** @type {readonly Family[]} */
export const FAMILIES = [
  {
    engine: 'memory',
    title: 'Memory',
    subject: 'holdfast-memory',
    peers: ['verrou', 'async-mutex'],
    minimums: ['bare-map'],
    patient: [],
    holding: [],
    idling: ['verrou', 'async-mutex'],
    reach: 'process',
    without: [],
    emulator: false,
  },
  {
    engine: 'sqlite',
    title: 'SQLite',
    subject: 'holdfast-sqlite',
    peers: ['proper-lockfile'],
    minimums: ['bare-sqlite'],
    patient: [],
    holding: ['proper-lockfile'],
    idling: ['proper-lockfile'],
    reach: 'machine',
    without: REPEATED_KEYS_ONLY,
    emulator: false,
  },
  {
    engine: 'redis',
    title: 'Redis',
    subject: 'holdfast-redis',
    peers: ['redlock-4', 'redlock-5', 'redis-semaphore', 'verrou-redis'],
    minimums: ['minimum-redis', 'bare-redis'],
    patient: [],
    holding: ['redis-semaphore'],
    idling: ['verrou-redis'],
    reach: 'network',
    without: [],
    emulator: false,
  },
  {
    engine: 'postgres',
    title: 'PostgreSQL',
    subject: 'holdfast-postgres',
    peers: ['verrou-knex', 'verrou-kysely'],
    minimums: ['minimum-postgres', 'bare-postgres'],
    patient: [],
    holding: [],
    idling: ['verrou-knex'],
    reach: 'network',
    without: [],
    emulator: false,
  },
  {
    engine: 'mysql',
    title: 'MySQL (MariaDB)',
    subject: 'holdfast-mysql',
    peers: ['verrou-mysql'],
    minimums: ['minimum-mysql'],
    patient: [],
    holding: [],
    idling: ['verrou-mysql'],
    reach: 'network',
    // Nobody is told there: processes that wait look again, and the run with 16 of them in 4 shows that.
    without: ['handover', ...WITHOUT_BATCHES, ...REPEATED_KEYS_ONLY],
    emulator: false,
  },
  {
    engine: 'dynamodb',
    title: 'DynamoDB (emulator)',
    subject: 'holdfast-dynamodb',
    peers: ['verrou-dynamodb', 'dynamodb-lock-client'],
    minimums: ['minimum-dynamodb'],
    patient: ['minimum-dynamodb'],
    holding: [],
    idling: ['verrou-dynamodb'],
    reach: 'network',
    // Nobody is told there: processes that wait look again, and the run with 16 of them in 4 shows that.
    without: ['handover', ...WITHOUT_BATCHES, ...REPEATED_KEYS_ONLY],
    emulator: true,
  },
  {
    engine: 'nats',
    title: 'NATS',
    subject: 'holdfast-nats',
    peers: [],
    minimums: ['minimum-nats'],
    patient: ['minimum-nats'],
    holding: [],
    idling: [],
    reach: 'network',
    without: [...WITHOUT_BATCHES, ...REPEATED_KEYS_ONLY],
    emulator: false,
  },
  {
    engine: 'etcd',
    title: 'etcd',
    subject: 'holdfast-etcd',
    peers: [],
    minimums: ['minimum-etcd'],
    patient: ['minimum-etcd'],
    holding: [],
    idling: [],
    reach: 'network',
    without: [...WITHOUT_BATCHES, ...REPEATED_KEYS_ONLY],
    emulator: false,
  },
  {
    engine: 'service',
    title: 'Service',
    subject: 'service-v2',
    peers: [],
    minimums: ['bare-fastify', 'fastify-with-access'],
    patient: [],
    holding: [],
    idling: [],
    reach: 'process',
    without: UNCONTENDED_ONLY,
    emulator: false,
  },
  {
    engine: 'redis-served',
    title: 'Service on Redis',
    subject: 'service-redis',
    peers: [],
    minimums: [],
    patient: [],
    holding: [],
    idling: [],
    reach: 'process',
    without: UNCONTENDED_ONLY,
    emulator: false,
  },
  {
    engine: 'postgres-served',
    title: 'Service on PostgreSQL',
    subject: 'service-postgres',
    peers: [],
    minimums: [],
    patient: [],
    holding: [],
    idling: [],
    reach: 'process',
    without: UNCONTENDED_ONLY,
    emulator: false,
  },
  {
    engine: 'http',
    title: 'HTTP store',
    subject: 'holdfast-http',
    peers: [],
    minimums: ['minimum-http'],
    patient: [],
    holding: [],
    idling: [],
    reach: 'process',
    without: UNCONTENDED_ONLY,
    emulator: false,
  },
];

/** As it stands in a report. @param {string} contender */
export function nameOf(contender) {
  const family = FAMILIES.find(({ subject, peers, minimums }) =>
    [subject, ...peers, ...minimums].includes(contender),
  );
  return family?.emulator ? `${contender} (emulator)` : contender;
}
