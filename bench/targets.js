/** What was promised, beside what was measured. A target that was not reached is reported, never moved. */
import { bestPeerOf, figureOf, rangeOf } from './comparison.js';
import { FAMILIES } from './families.js';
import { LABELS } from './plan.js';
import { serverVerdicts } from './server-targets.js';
import { number, percent, ratio } from './words.js';

/** @typedef {import('./types.d.ts').Outcome} Outcome */
/** @typedef {import('./types.d.ts').WorkloadName} WorkloadName */
/** @typedef {import('./types.d.ts').Verdict} Verdict */
/** Without a peer: the best of them. @typedef {{ workload: WorkloadName, subject: string, peer?: string, atLeast: number }} Ratio */

/** @type {readonly Ratio[]} */
const RATIOS = [
  { workload: 'sequential', subject: 'holdfast-memory', peer: 'verrou', atLeast: 1.5 },
  { workload: 'in-flight', subject: 'holdfast-memory', peer: 'verrou', atLeast: 1.5 },
  { workload: 'fresh', subject: 'holdfast-memory', peer: 'verrou', atLeast: 3 },
  { workload: 'fresh', subject: 'holdfast-memory', peer: 'async-mutex', atLeast: 1 },
  { workload: 'fresh-in-flight', subject: 'holdfast-memory', peer: 'verrou', atLeast: 3 },
  { workload: 'fresh-in-flight', subject: 'holdfast-memory', peer: 'async-mutex', atLeast: 1 },
  { workload: 'contended', subject: 'holdfast-memory', peer: 'verrou', atLeast: 1.5 },
  { workload: 'in-flight', subject: 'holdfast-sqlite', peer: 'proper-lockfile', atLeast: 2 },
  { workload: 'contended', subject: 'holdfast-sqlite', peer: 'proper-lockfile', atLeast: 10 },
  { workload: 'in-flight', subject: 'holdfast-redis', atLeast: 1.8 },
  { workload: 'fresh-in-flight', subject: 'holdfast-redis', atLeast: 1.8 },
  { workload: 'contended', subject: 'holdfast-redis', atLeast: 8 },
  { workload: 'across', subject: 'holdfast-redis', atLeast: 4 },
  { workload: 'in-flight', subject: 'holdfast-postgres', atLeast: 8 },
  { workload: 'in-flight', subject: 'holdfast-postgres', peer: 'minimum-postgres', atLeast: 3.5 },
  { workload: 'contended', subject: 'holdfast-postgres', atLeast: 10 },
  { workload: 'across', subject: 'holdfast-postgres', atLeast: 4 },
  { workload: 'contended', subject: 'holdfast-quorum', atLeast: 8 },
  { workload: 'contended', subject: 'holdfast-distributed-locks', atLeast: 8 },
  { workload: 'contended', subject: 'holdfast-lock-service-central', atLeast: 8 },
  { workload: 'contended', subject: 'holdfast-mysql', atLeast: 8 },
  { workload: 'in-flight', subject: 'holdfast-dynamodb', peer: 'minimum-dynamodb', atLeast: 0.9 },
  { workload: 'contended', subject: 'holdfast-dynamodb', atLeast: 8 },
  { workload: 'contended', subject: 'holdfast-firestore', atLeast: 8 },
  { workload: 'in-flight', subject: 'holdfast-nats', peer: 'minimum-nats', atLeast: 0.9 },
  { workload: 'contended', subject: 'holdfast-nats', atLeast: 8 },
  { workload: 'in-flight', subject: 'holdfast-etcd', peer: 'minimum-etcd', atLeast: 0.9 },
  { workload: 'contended', subject: 'holdfast-etcd', atLeast: 8 },
  { workload: 'in-flight', subject: 'service-v2', peer: 'bare-fastify', atLeast: 0.6 },
  { workload: 'in-flight', subject: 'service-redis', peer: 'bare-fastify', atLeast: 0.4 },
  { workload: 'in-flight', subject: 'service-postgres', peer: 'bare-fastify', atLeast: 0.23 },
  { workload: 'in-flight', subject: 'holdfast-http', peer: 'minimum-http', atLeast: 3 },
];

const JAIN_AT_LEAST = 0.99;
/** Between processes, where it is another. Null: nothing is promised, for want of a line to stand in. @type {Readonly<Record<string, number | null>>} */
const JAIN_ACROSS_AT_LEAST = {
  'holdfast-distributed-locks': null,
  'holdfast-lock-service-central': null,
  'holdfast-mysql': null,
  'holdfast-dynamodb': null,
  'holdfast-nats': 0.95,
};
/** "A few" round trips per second. */
const HELD_CALLS_AT_MOST = 10;
const HELD_TIMERS_AT_MOST = 1;
const HELD_HEAP_BELOW = 1_000;
/** What all further waiters together may add to the calls of the first, a second: the noise of its own poll. */
const IDLE_CALLS_AT_MOST = 0.5;

/** The targets of a subject in a workload, with the peer that each is about in this run. @param {readonly Outcome[]} outcomes @param {string} subject @param {WorkloadName} workload */
export function ratiosOf(outcomes, subject, workload) {
  return RATIOS.filter((one) => one.subject === subject && one.workload === workload).map((one) => ({
    ...one,
    best: one.peer === undefined,
    peer: one.peer ?? bestPeerOf(outcomes, subject, workload) ?? 'best peer',
  }));
}

/** @param {readonly Outcome[]} outcomes @returns {Verdict[]} */
export function verdictsOn(outcomes) {
  const local = ['holdfast-memory', 'holdfast-sqlite'];
  const served = FAMILIES.flatMap(({ reach, subject }) => (reach === 'network' ? [subject] : []));
  const verdicts = [
    ...FAMILIES.flatMap(({ subject }) => ratioVerdicts(outcomes, subject)),
    ...FAMILIES.flatMap(({ subject }) => contendedVerdicts(outcomes, subject, 'contended')),
    ...served.flatMap((subject) => contendedVerdicts(outcomes, subject, 'across')),
    ...served.flatMap((subject) => serverVerdicts(outcomes, subject)),
    ...local.flatMap((subject) => heldVerdicts(outcomes, subject)),
    ...local.flatMap((subject) => idleVerdict(outcomes, subject)),
  ];
  const emulated = FAMILIES.flatMap(({ emulator, subject }) => (emulator ? [subject] : []));
  return verdicts.map((verdict) =>
    emulated.some((subject) => verdict.what.startsWith(subject))
      ? { ...verdict, what: `${verdict.what} (emulator)` }
      : verdict,
  );
}

/** @param {readonly Outcome[]} outcomes @param {string} subject @returns {Verdict[]} */
function ratioVerdicts(outcomes, subject) {
  /** @type {WorkloadName[]} */
  const workloads = ['sequential', 'in-flight', 'fresh', 'fresh-in-flight', 'contended', 'across'];
  const targets = workloads.flatMap((workload) => ratiosOf(outcomes, subject, workload));
  return targets.flatMap(({ workload, peer, best, atLeast }) => {
    const own = figureOf(outcomes, subject, workload, 'cyclesPerSecond');
    const other = figureOf(outcomes, peer, workload, 'cyclesPerSecond');
    if (own === undefined || other === undefined) return [];
    const measured = own / other;
    return [
      {
        what: `${subject} against ${best ? `the best peer, ${peer}` : peer}, ${LABELS[workload]}`,
        target: `at least ${ratio(atLeast)}`,
        measured: `${ratio(measured)}${rangeOf(outcomes, workload, 'cyclesPerSecond', subject, peer)}`,
        reached: measured >= atLeast,
      },
    ];
  });
}

/** @param {readonly Outcome[]} outcomes @param {string} subject @param {'contended' | 'across'} workload @returns {Verdict[]} */
function contendedVerdicts(outcomes, subject, workload) {
  const jain = figureOf(outcomes, subject, workload, 'jain');
  const overlaps = figureOf(outcomes, subject, workload, 'overlaps');
  if (jain === undefined || overlaps === undefined) return [];
  const promised = workload === 'across' ? JAIN_ACROSS_AT_LEAST[subject] : JAIN_AT_LEAST;
  const jainAtLeast = promised === undefined ? JAIN_AT_LEAST : promised;
  const fairness =
    jainAtLeast === null
      ? []
      : [
          {
            what: `${subject}, ${LABELS[workload]}: fairness (Jain)`,
            target: `at least ${jainAtLeast}`,
            measured: jain.toFixed(4),
            reached: jain >= jainAtLeast,
          },
        ];
  return [
    ...fairness,
    {
      what: `${subject}, ${LABELS[workload]}: two holders at once`,
      target: 'never',
      measured: number(overlaps),
      reached: overlaps === 0,
    },
  ];
}

/** @param {readonly Outcome[]} outcomes @param {string} subject @returns {Verdict[]} */
function heldVerdicts(outcomes, subject) {
  const of = (/** @type {string} */ figure) => figureOf(outcomes, subject, 'held', figure) ?? Number.NaN;
  if (Number.isNaN(of('timers'))) return [];
  return [
    {
      what: `${subject}, leases held: round trips per second`,
      target: `at most ${HELD_CALLS_AT_MOST}`,
      measured: number(of('storeCallsPerSecond')),
      reached: of('storeCallsPerSecond') <= HELD_CALLS_AT_MOST,
    },
    {
      what: `${subject}, leases held: timers`,
      target: `at most ${HELD_TIMERS_AT_MOST}`,
      measured: number(of('timers')),
      reached: of('timers') <= HELD_TIMERS_AT_MOST,
    },
    {
      what: `${subject}, leases held: heap per lease`,
      target: `under ${number(HELD_HEAP_BELOW)} bytes`,
      measured: `${number(of('heapBytesPerLease'))} bytes`,
      reached: of('heapBytesPerLease') < HELD_HEAP_BELOW,
    },
  ];
}

/** @param {readonly Outcome[]} outcomes @param {string} subject @returns {Verdict[]} */
function idleVerdict(outcomes, subject) {
  const one = figureOf(outcomes, subject, 'idle', 'callsPerSecondOfOne');
  const all = figureOf(outcomes, subject, 'idle', 'callsPerSecondOfAll');
  const cpu = figureOf(outcomes, subject, 'idle', 'cpuShareOfAll');
  if (one === undefined || all === undefined || cpu === undefined) return [];
  return [
    {
      what: `${subject}, store calls per second that idle waiters add to the first one's`,
      target: `at most ${IDLE_CALLS_AT_MOST}`,
      measured: `${number(Math.max(0, all - one))} (processor ${percent(cpu)})`,
      reached: all - one <= IDLE_CALLS_AT_MOST,
    },
  ];
}
