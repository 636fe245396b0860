/** What was promised, beside what was measured. A target that was not reached is reported, never moved. */
import { LABELS } from './plan.js';
import { number, percent, ratio } from './words.js';

/** @typedef {import('./types.d.ts').Outcome} Outcome */
/** @typedef {import('./types.d.ts').WorkloadName} WorkloadName */
/** @typedef {import('./types.d.ts').Verdict} Verdict */

/** @type {readonly { workload: WorkloadName, subject: string, peer: string, atLeast: number }[]} */
export const RATIOS = [
  { workload: 'sequential', subject: 'holdfast-memory', peer: 'verrou', atLeast: 1.5 },
  { workload: 'in-flight', subject: 'holdfast-memory', peer: 'verrou', atLeast: 1.5 },
  { workload: 'contended', subject: 'holdfast-memory', peer: 'verrou', atLeast: 1.5 },
  { workload: 'in-flight', subject: 'holdfast-sqlite', peer: 'proper-lockfile', atLeast: 2 },
  { workload: 'contended', subject: 'holdfast-sqlite', peer: 'proper-lockfile', atLeast: 10 },
];

const JAIN_AT_LEAST = 0.99;
/** "A few" round trips a second. */
const HELD_CALLS_AT_MOST = 10;
const HELD_TIMERS_AT_MOST = 1;
const HELD_HEAP_BELOW = 1_000;
/** What all further waiters together may add to the calls of the first, a second: the noise of its own poll. */
const IDLE_CALLS_AT_MOST = 0.5;

/**
 * @param {readonly Outcome[]} outcomes
 * @param {string} contender
 * @param {WorkloadName} workload
 * @param {string} figure
 */
export function figureOf(outcomes, contender, workload, figure) {
  const outcome = outcomes.find((one) => one.contender === contender && one.workload === workload);
  return outcome?.figures[figure];
}

/** @param {readonly Outcome[]} outcomes @returns {Verdict[]} */
export function verdictsOn(outcomes) {
  const subjects = ['holdfast-memory', 'holdfast-sqlite'];
  return [
    ...RATIOS.flatMap((target) => ratioVerdict(outcomes, target)),
    ...subjects.flatMap((subject) => contendedVerdicts(outcomes, subject)),
    ...subjects.flatMap((subject) => heldVerdicts(outcomes, subject)),
    ...subjects.flatMap((subject) => idleVerdict(outcomes, subject)),
  ];
}

/** @param {readonly Outcome[]} outcomes @param {(typeof RATIOS)[number]} target @returns {Verdict[]} */
function ratioVerdict(outcomes, { workload, subject, peer, atLeast }) {
  const own = figureOf(outcomes, subject, workload, 'cyclesPerSecond');
  const other = figureOf(outcomes, peer, workload, 'cyclesPerSecond');
  if (own === undefined || other === undefined) return [];
  const measured = own / other;
  return [
    {
      what: `${subject} against ${peer}, ${LABELS[workload]}`,
      target: `at least ${ratio(atLeast)}`,
      measured: `${ratio(measured)}${rangeOf(outcomes, workload, subject, peer)}`,
      reached: measured >= atLeast,
    },
  ];
}

/**
 * Between which ratios the repetitions lie: a median may hide that one of them missed the target.
 * @param {readonly Outcome[]} outcomes @param {WorkloadName} workload @param {string} subject @param {string} peer
 */
function rangeOf(outcomes, workload, subject, peer) {
  const ratesOf = (/** @type {string} */ contender) =>
    outcomes
      .find((one) => one.contender === contender && one.workload === workload)
      ?.repetitions.map(({ cyclesPerSecond = 0 }) => cyclesPerSecond) ?? [];
  const others = ratesOf(peer);
  const ratios = ratesOf(subject).flatMap((rate, index) => (others[index] ? [rate / others[index]] : []));
  return ratios.length < 2 ? '' : ` (${ratio(Math.min(...ratios))} to ${ratio(Math.max(...ratios))})`;
}

/** @param {readonly Outcome[]} outcomes @param {string} subject @returns {Verdict[]} */
function contendedVerdicts(outcomes, subject) {
  const jain = figureOf(outcomes, subject, 'contended', 'jain');
  const overlaps = figureOf(outcomes, subject, 'contended', 'overlaps');
  if (jain === undefined || overlaps === undefined) return [];
  return [
    {
      what: `${subject}, fairness over 16 contenders (Jain)`,
      target: `at least ${JAIN_AT_LEAST}`,
      measured: jain.toFixed(4),
      reached: jain >= JAIN_AT_LEAST,
    },
    {
      what: `${subject}, two holders at once`,
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
      what: `${subject}, leases held: round trips a second`,
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
      what: `${subject}, leases held: heap a lease`,
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
      what: `${subject}, store calls a second that idle waiters add to the first one's`,
      target: `at most ${IDLE_CALLS_AT_MOST}`,
      measured: `${number(Math.max(0, all - one))} (processor ${percent(cpu)})`,
      reached: all - one <= IDLE_CALLS_AT_MOST,
    },
  ];
}
