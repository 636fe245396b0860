/** The chart for the docs: how many times as fast as each peer, on a logarithmic scale, with the targets as marks. */
import { bestPeerOf, figureOf } from './comparison.js';
import { FAMILIES } from './families.js';
import { LABELS, THROUGHPUT } from './plan.js';
import { ratiosOf } from './targets.js';
import { number, ratio } from './words.js';

const WIDTH = 890;
const LEFT = 415;
const RIGHT = 70;
const ROW = 26;
const TOP = 58;

/** @typedef {{ label: string, value: number, target: number | undefined }} Bar */

/** @param {import('./types.d.ts').Report} report */
export function chartOf({ outcomes, machine, versions }) {
  const bars = FAMILIES.flatMap((family) => barsOf(outcomes, family));
  const lowest = Math.min(0.1, ...bars.map((bar) => bar.value));
  const highest = Math.max(10, ...bars.map((bar) => bar.value));
  const from = Math.floor(Math.log10(lowest));
  const to = Math.ceil(Math.log10(highest));
  const x = (/** @type {number} */ value) =>
    LEFT + ((Math.log10(value) - from) / (to - from)) * (WIDTH - LEFT - RIGHT);
  const height = TOP + bars.length * ROW + 44;
  const floor = TOP + bars.length * ROW;
  const grid = Array.from({ length: to - from + 1 }, (_, index) => 10 ** (from + index)).map(
    (value) =>
      `<line class="${value === 1 ? 'one' : 'grid'}" x1="${x(value)}" x2="${x(value)}" y1="${TOP - 6}" y2="${floor}"/>` +
      `<text class="small" x="${x(value)}" y="${floor + 15}" text-anchor="middle">${number(value)}×</text>`,
  );
  const rows = bars.map((bar, index) => rowOf(bar, TOP + index * ROW, x));
  const caption = `Node ${versions.node}, ${machine.processors} cores (${machine.processor}). The mark is the target.`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Throughput of Holdfast against its peers">
<style>
text{font:13px system-ui,sans-serif;fill:#24292f}.title{font-weight:600;font-size:15px}.small{font-size:11px;fill:#57606a}
.grid{stroke:#d0d7de}.one{stroke:#57606a}.bar{fill:#2f6f5e}.under{fill:#b0632f}.target{stroke:#24292f;stroke-width:2}
@media (prefers-color-scheme: dark){text{fill:#e6edf3}.small{fill:#9198a1}.grid{stroke:#30363d}.one{stroke:#9198a1}.bar{fill:#4fa58d}.under{fill:#d08350}.target{stroke:#e6edf3}}
</style>
<text class="title" x="12" y="24">Holdfast’s cycles per second, as a multiple of each peer’s</text>
<text class="small" x="12" y="41">${caption}</text>
${[...grid, ...rows].join('\n')}
</svg>
`;
}

/**
 * On a server, where the peers are many, only against the best of them and the hand-written minimum.
 * @param {readonly import('./types.d.ts').Outcome[]} outcomes
 * @param {import('./types.d.ts').Family} family
 */
function barsOf(outcomes, { title, subject, peers, minimums, reach }) {
  if (reach !== 'network') {
    return peers.flatMap((peer) =>
      THROUGHPUT.flatMap((workload) => barOf(outcomes, { title, subject, peer, workload })),
    );
  }
  return THROUGHPUT.flatMap((workload) =>
    [...new Set([bestPeerOf(outcomes, subject, workload), minimums[0]])].flatMap((peer) =>
      peer ? barOf(outcomes, { title, subject, peer, workload }) : [],
    ),
  );
}

/**
 * @param {readonly import('./types.d.ts').Outcome[]} outcomes
 * @param {{ title: string, subject: string, peer: string, workload: import('./types.d.ts').WorkloadName }} pair
 * @returns {Bar[]}
 */
function barOf(outcomes, { title, subject, peer, workload }) {
  const own = figureOf(outcomes, subject, workload, 'cyclesPerSecond');
  const other = figureOf(outcomes, peer, workload, 'cyclesPerSecond');
  if (own === undefined || other === undefined || own <= 0 || other <= 0) return [];
  const target = ratiosOf(outcomes, subject, workload).find((one) => one.peer === peer);
  return [{ label: `${title} / ${peer}, ${LABELS[workload]}`, value: own / other, target: target?.atLeast }];
}

/** @param {Bar} bar @param {number} y @param {(value: number) => number} x */
function rowOf({ label, value, target }, y, x) {
  const start = Math.min(x(1), x(value));
  const width = Math.max(Math.abs(x(value) - x(1)), 1);
  const missed = target === undefined ? value < 1 : value < target;
  const mark =
    target === undefined
      ? ''
      : `<line class="target" x1="${x(target)}" x2="${x(target)}" y1="${y}" y2="${y + ROW - 6}"/>`;
  return (
    `<text x="12" y="${y + 15}">${label}</text>` +
    `<rect class="${missed ? 'under' : 'bar'}" x="${start}" y="${y + 2}" width="${width}" height="${ROW - 10}" rx="2"/>${mark}` +
    `<text x="${Math.max(x(value), x(target ?? value), x(1)) + 6}" y="${y + 15}">${ratio(value)}</text>`
  );
}
