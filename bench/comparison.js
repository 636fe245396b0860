/** Looks up what was measured, and which of the peers did best. */
import { FAMILIES } from './families.js';
import { ratio } from './words.js';

/** @typedef {import('./types.d.ts').Outcome} Outcome */
/** @typedef {import('./types.d.ts').WorkloadName} WorkloadName */

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

/**
 * The peer of a subject that is hardest to beat: the highest rate, or the shortest time.
 * @param {readonly Outcome[]} outcomes @param {string} subject @param {WorkloadName} workload
 * @param {'cyclesPerSecond' | 'p50Ms' | 'p50Us'} figure
 * @returns {string | undefined}
 */
export function bestPeerOf(outcomes, subject, workload, figure = 'cyclesPerSecond') {
  const family = FAMILIES.find((one) => one.subject === subject);
  const peers = family ? [...family.peers, ...family.patient] : [];
  const sign = figure === 'cyclesPerSecond' ? -1 : 1;
  const measured = peers.flatMap((peer) => {
    const value = figureOf(outcomes, peer, workload, figure);
    return value === undefined || Number.isNaN(value) ? [] : [{ peer, value: sign * value }];
  });
  return measured.sort((a, b) => a.value - b.value)[0]?.peer;
}

/**
 * Between which ratios the repetitions lie: a median may hide that one of them missed the target.
 * @param {readonly Outcome[]} outcomes @param {WorkloadName} workload @param {string} figure
 * @param {string} above @param {string} below
 */
export function rangeOf(outcomes, workload, figure, above, below) {
  const valuesOf = (/** @type {string} */ contender) =>
    outcomes
      .find((one) => one.contender === contender && one.workload === workload)
      ?.repetitions.map((figures) => figures[figure] ?? 0) ?? [];
  const others = valuesOf(below);
  const ratios = valuesOf(above).flatMap((value, index) => (others[index] ? [value / others[index]] : []));
  return ratios.length < 2 ? '' : ` (${ratio(Math.min(...ratios))} to ${ratio(Math.max(...ratios))})`;
}
