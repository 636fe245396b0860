/** Which contender meets which workload, how long and how often. */

/** @typedef {import('./types.d.ts').WorkloadName} WorkloadName */
/** @typedef {import('./types.d.ts').Sizes} Sizes */

/** @type {Sizes} */
export const FULL = {
  repetitions: 5,
  warmUpMs: 400,
  measureMs: 1_000,
  ttlMs: 30_000,
  leases: 10_000,
  spreadMs: 10_000,
  heldMs: 10_000,
  waiters: 1_000,
  idleMs: 5_000,
};

/** Shows that everything runs. Its figures mean nothing. @type {Sizes} */
export const QUICK = {
  repetitions: 1,
  warmUpMs: 50,
  measureMs: 100,
  ttlMs: 3_000,
  leases: 300,
  spreadMs: 300,
  heldMs: 600,
  waiters: 50,
  idleMs: 200,
};

/** @type {readonly { title: string, subject: string, peers: readonly string[], minimum: string }[]} */
export const FAMILIES = [
  { title: 'Memory', subject: 'holdfast-memory', peers: ['verrou', 'async-mutex'], minimum: 'bare-map' },
  { title: 'SQLite', subject: 'holdfast-sqlite', peers: ['proper-lockfile'], minimum: 'bare-sqlite' },
];

/** @type {Readonly<Record<WorkloadName, readonly string[]>>} */
const CONTENDERS = {
  sequential: FAMILIES.flatMap(({ subject, peers, minimum }) => [subject, ...peers, minimum]),
  'in-flight': FAMILIES.flatMap(({ subject, peers, minimum }) => [subject, ...peers, minimum]),
  contended: FAMILIES.flatMap(({ subject, peers }) => [subject, ...peers]),
  across: ['holdfast-sqlite', 'proper-lockfile'],
  held: ['holdfast-memory', 'holdfast-sqlite', 'proper-lockfile'],
  idle: FAMILIES.flatMap(({ subject, peers }) => [subject, ...peers]),
};

/** As people read them. @type {Readonly<Record<WorkloadName, string>>} */
export const LABELS = {
  sequential: 'sequential',
  'in-flight': '64 in flight',
  contended: '16 contenders',
  across: '16 in 4 processes',
  held: 'held leases',
  idle: 'idle waiters',
};

/** @type {readonly WorkloadName[]} */
export const THROUGHPUT = ['sequential', 'in-flight', 'contended', 'across'];
/** How many processes meet in the workload `across`. */
export const PROCESSES = 4;
/** @type {readonly WorkloadName[]} */
const ONCE = ['held', 'idle'];

/**
 * Repetitions are interleaved: whatever else the machine does meanwhile meets all contenders alike.
 * Holding and idling are long and steady, and run once.
 * @param {Sizes} sizes
 * @param {string | undefined} only a part of `workload/contender`
 * @returns {{ workload: WorkloadName, contender: string }[]}
 */
export function planOf(sizes, only) {
  const all = [];
  for (const workload of THROUGHPUT) {
    for (let repetition = 0; repetition < sizes.repetitions; repetition++) {
      for (const contender of CONTENDERS[workload]) all.push({ workload, contender });
    }
  }
  for (const workload of ONCE) {
    for (const contender of CONTENDERS[workload]) all.push({ workload, contender });
  }
  return all.filter(({ workload, contender }) => !only || `${workload}/${contender}`.includes(only));
}
