/** What was promised for the stores on a server, over and above the rates: times and round trips. */
import { bestPeerOf, figureOf, rangeOf } from './comparison.js';
import { FAMILIES } from './families.js';
import { number, ratio } from './words.js';

/** @typedef {import('./types.d.ts').Outcome} Outcome */
/** @typedef {import('./types.d.ts').Verdict} Verdict */

const CYCLE_OF_MINIMUM_AT_MOST = 1.4;
/** Where it is another. @type {Readonly<Record<string, number>>} */
const CYCLE_OF_MINIMUM_AT_MOST_ON = { 'holdfast-postgres': 1.2 };
/** Where there are peers that keep as little as they can. @type {Readonly<Record<string, number>>} */
const CYCLE_OF_PEER_AT_MOST = { 'holdfast-redis': 1.25 };
/** From one process to another: p50 and p99. @type {Readonly<Record<string, readonly [number, number]>>} */
const HANDOVER_MS_AT_MOST = {
  'holdfast-redis': [1, 3],
  'holdfast-postgres': [2.5, 8],
  'holdfast-nats': [1.8, 8],
};
/** Somebody who begins or ends a measurement in the middle of a cycle is no round trip more. */
const ROUND_TRIPS_SLACK = 0.05;
const HANDOVER_OF_PEER_AT_MOST = 0.5;
const IDLE_CALLS_AT_MOST = 2;
const HELD_CALLS_AT_MOST = 20;
const KILLED_OVER_TTL_MS_AT_MOST = 250;
/** Of the rate with no other keys: the same, but for the noise and the larger index. */
const MANY_KEYS_AT_LEAST = 0.8;
const MANY_KEYS_CPU_AT_MOST = 1.25;
/** Of the server's processor time for a grant. */
const REFUSED_CPU_AT_MOST = 1.3;
/** Where hand-over, waiting, holding and a holder's death have marks too. */
const WITH_ALL_MARKS = ['holdfast-redis', 'holdfast-postgres'];

/** @param {readonly Outcome[]} outcomes @param {string} subject @returns {Verdict[]} */
export function serverVerdicts(outcomes, subject) {
  const always = [...sequentialVerdicts(outcomes, subject), ...handoverVerdict(outcomes, subject)];
  if (!WITH_ALL_MARKS.includes(subject)) return always;
  return [
    ...always,
    ...handoverTimeVerdict(outcomes, subject),
    ...callVerdicts(outcomes, subject),
    ...killedVerdict(outcomes, subject),
    ...manyKeysVerdict(outcomes, subject),
    ...refusedVerdict(outcomes, subject),
  ];
}

/** @param {readonly Outcome[]} outcomes @param {string} subject @returns {Verdict[]} */
function sequentialVerdicts(outcomes, subject) {
  const [minimum = ''] = FAMILIES.find((family) => family.subject === subject)?.minimums ?? [];
  const of = (/** @type {string} */ contender, /** @type {string} */ figure) =>
    figureOf(outcomes, contender, 'sequential', figure) ?? Number.NaN;
  const measured = of(subject, 'p50Us') / of(minimum, 'p50Us');
  if (Number.isNaN(measured)) return [];
  const own = of(subject, 'callsPerCycle');
  const least = of(minimum, 'callsPerCycle');
  const atMost = CYCLE_OF_MINIMUM_AT_MOST_ON[subject] ?? CYCLE_OF_MINIMUM_AT_MOST;
  return [
    {
      what: `${subject}, sequential: time of a cycle (p50) against ${minimum}`,
      target: `at most ${ratio(atMost)}`,
      measured: `${measured.toFixed(2)}×${rangeOf(outcomes, 'sequential', 'p50Us', subject, minimum)}`,
      reached: measured <= atMost,
    },
    ...peerCycleVerdict(outcomes, subject),
    {
      what: `${subject}, sequential: round trips per cycle`,
      target: `${number(least)}, as ${minimum}`,
      measured: number(own),
      reached: own <= least + ROUND_TRIPS_SLACK,
    },
  ];
}

/** @param {readonly Outcome[]} outcomes @param {string} subject @returns {Verdict[]} */
function peerCycleVerdict(outcomes, subject) {
  const atMost = CYCLE_OF_PEER_AT_MOST[subject];
  const peer = bestPeerOf(outcomes, subject, 'sequential', 'p50Us');
  const own = figureOf(outcomes, subject, 'sequential', 'p50Us');
  const other = peer && figureOf(outcomes, peer, 'sequential', 'p50Us');
  if (atMost === undefined || !peer || own === undefined || !other) return [];
  return [
    {
      what: `${subject}, sequential: time of a cycle (p50) against the best peer, ${peer}`,
      target: `at most ${ratio(atMost)}`,
      measured: `${(own / other).toFixed(2)}×${rangeOf(outcomes, 'sequential', 'p50Us', subject, peer)}`,
      reached: own / other <= atMost,
    },
  ];
}

/** @param {readonly Outcome[]} outcomes @param {string} subject @returns {Verdict[]} */
function handoverTimeVerdict(outcomes, subject) {
  const own = figureOf(outcomes, subject, 'handover', 'p50Ms');
  const peer = bestPeerOf(outcomes, subject, 'handover', 'p50Ms');
  const other = peer && figureOf(outcomes, peer, 'handover', 'p50Ms');
  if (own === undefined || !peer || !other) return [];
  return [
    {
      what: `${subject}, hand-over to another process: p50 against the best peer, ${peer}`,
      target: `at most ${ratio(HANDOVER_OF_PEER_AT_MOST)}`,
      measured: `${(own / other).toFixed(2)}×${rangeOf(outcomes, 'handover', 'p50Ms', subject, peer)}`,
      reached: own / other <= HANDOVER_OF_PEER_AT_MOST,
    },
  ];
}

/** @param {readonly Outcome[]} outcomes @param {string} subject @returns {Verdict[]} */
function handoverVerdict(outcomes, subject) {
  const overlaps = figureOf(outcomes, subject, 'handover', 'overlaps');
  if (overlaps === undefined) return [];
  const times = ['p50', 'p99'].flatMap((name, index) => {
    const ms = figureOf(outcomes, subject, 'handover', `${name}Ms`);
    const atMost = HANDOVER_MS_AT_MOST[subject]?.[index];
    if (ms === undefined || atMost === undefined) return [];
    return [
      {
        what: `${subject}, hand-over to another process: ${name}`,
        target: `at most ${number(atMost)} ms`,
        measured: `${number(ms)} ms`,
        reached: ms <= atMost,
      },
    ];
  });
  return [
    ...times,
    {
      what: `${subject}, hand-over to another process: two holders at once`,
      target: 'never',
      measured: number(overlaps),
      reached: overlaps === 0,
    },
  ];
}

/** @param {readonly Outcome[]} outcomes @param {string} subject @returns {Verdict[]} */
function callVerdicts(outcomes, subject) {
  const idle = figureOf(outcomes, subject, 'idle', 'callsPerSecondOfAll');
  const held = figureOf(outcomes, subject, 'held', 'storeCallsPerSecond');
  const verdict = (
    /** @type {string} */ what,
    /** @type {number | undefined} */ measured,
    /** @type {number} */ atMost,
  ) =>
    measured === undefined
      ? []
      : [
          {
            what: `${subject}, ${what}: round trips per second`,
            target: `at most ${atMost}`,
            measured: number(measured),
            reached: measured <= atMost,
          },
        ];
  return [
    ...verdict('idle waiters', idle, IDLE_CALLS_AT_MOST),
    ...verdict('leases held', held, HELD_CALLS_AT_MOST),
  ];
}

/** @param {readonly Outcome[]} outcomes @param {string} subject @returns {Verdict[]} */
function killedVerdict(outcomes, subject) {
  const p99 = figureOf(outcomes, subject, 'killed', 'p99Ms');
  const ttl = figureOf(outcomes, subject, 'killed', 'ttlMs');
  if (p99 === undefined || ttl === undefined) return [];
  return [
    {
      what: `${subject}, holder killed: the next waiter has its turn (p99)`,
      target: `at most ${number(ttl + KILLED_OVER_TTL_MS_AT_MOST)} ms`,
      measured: `${number(p99)} ms`,
      reached: p99 <= ttl + KILLED_OVER_TTL_MS_AT_MOST,
    },
  ];
}

/** @param {readonly Outcome[]} outcomes @param {string} subject @returns {Verdict[]} */
function manyKeysVerdict(outcomes, subject) {
  const of = (/** @type {import('./types.d.ts').WorkloadName} */ workload, /** @type {string} */ figure) =>
    figureOf(outcomes, subject, workload, figure) ?? Number.NaN;
  const rate = of('many-keys', 'cyclesPerSecond') / of('in-flight', 'cyclesPerSecond');
  const cpu = of('many-keys', 'serverCpuUs') / of('in-flight', 'serverCpuUs');
  if (Number.isNaN(rate)) return [];
  return [
    {
      what: `${subject}, 64 in flight: with a million other keys against none`,
      target: `at least ${ratio(MANY_KEYS_AT_LEAST)}`,
      measured: ratio(rate),
      reached: rate >= MANY_KEYS_AT_LEAST,
    },
    ...(Number.isNaN(cpu)
      ? []
      : [
          {
            what: `${subject}, 64 in flight: processor time of the server with a million other keys against none`,
            target: `at most ${MANY_KEYS_CPU_AT_MOST.toFixed(2)}×`,
            measured: `${cpu.toFixed(2)}×`,
            reached: cpu <= MANY_KEYS_CPU_AT_MOST,
          },
        ]),
  ];
}

/** @param {readonly Outcome[]} outcomes @param {string} subject @returns {Verdict[]} */
function refusedVerdict(outcomes, subject) {
  const granted = figureOf(outcomes, subject, 'granted', 'serverCpuUs');
  const refused = figureOf(outcomes, subject, 'refused', 'serverCpuUs');
  if (granted === undefined || refused === undefined) return [];
  return [
    {
      what: `${subject}, tryAcquire of a held key: processor time of the server against a grant`,
      target: `at most ${ratio(REFUSED_CPU_AT_MOST)}`,
      measured: `${(refused / granted).toFixed(2)}×`,
      reached: refused / granted <= REFUSED_CPU_AT_MOST,
    },
  ];
}
