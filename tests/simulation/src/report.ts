/** The table at the end of a simulation, and the lines of a violation. */
import type { Tally } from './tally.js';

const numbers = new Intl.NumberFormat('en-GB', { maximumFractionDigits: 1 });
const show = (value: number): string => numbers.format(value);
const percent = (part: number, whole: number): string => `${show((100 * part) / Math.max(whole, 1))} %`;

/** What the runs of one profile come to. */
export class Sum {
  readonly name: string;
  runs = 0;
  grants = 0;
  changes = 0;
  handovers = 0;
  handoffs = 0;
  losses = 0;
  timeouts = 0;
  messages = 0;
  faulty = 0;
  placesLost = 0;
  violations = 0;
  longestWaitMs = 0;
  /** Of the crew that waited longest in any run. */
  meanWaitMs = 0;
  longestIdleMs = 0;
  longestCleanIdleMs = 0;
  idleMs = 0;
  wantedMs = 0;
  seconds = 0;
  readonly faults = new Map<string, number>();

  constructor(name: string) {
    this.name = name;
  }

  add(tally: Tally | Sum, seconds: number): void {
    this.runs += tally instanceof Sum ? tally.runs : 1;
    this.grants += tally.grants;
    this.changes += tally.changes;
    this.handovers += tally.handovers;
    this.handoffs += tally.handoffs;
    this.losses += tally.losses;
    this.timeouts += tally.timeouts;
    this.messages += tally.messages;
    this.faulty += tally.faulty;
    this.placesLost += tally.placesLost;
    this.violations += typeof tally.violations === 'number' ? tally.violations : tally.violations.length;
    this.longestWaitMs = Math.max(this.longestWaitMs, tally.longestWaitMs);
    this.meanWaitMs = Math.max(this.meanWaitMs, tally.meanWaitMs);
    this.longestIdleMs = Math.max(this.longestIdleMs, tally.longestIdleMs);
    this.longestCleanIdleMs = Math.max(this.longestCleanIdleMs, tally.longestCleanIdleMs);
    this.idleMs += tally.idleMs;
    this.wantedMs += tally.wantedMs;
    this.seconds += seconds;
    for (const [kind, count] of tally.faults) this.faults.set(kind, (this.faults.get(kind) ?? 0) + count);
  }
}

const COLUMNS: readonly (readonly [string, (sum: Sum) => string])[] = [
  ['profile', ({ name }) => name],
  ['runs', ({ runs }) => show(runs)],
  ['grants', ({ grants }) => show(grants)],
  ['changed process', ({ changes, grants }) => percent(changes, grants)],
  ['handovers', ({ handovers }) => show(handovers)],
  ['handoffs', ({ handoffs }) => show(handoffs)],
  ['lost', ({ losses }) => show(losses)],
  ['timeouts', ({ timeouts }) => show(timeouts)],
  ['messages', ({ messages }) => show(messages)],
  ['faulty', ({ faulty, messages }) => percent(faulty, messages)],
  ['places lost', ({ placesLost }) => show(placesLost)],
  ['longest wait', ({ longestWaitMs }) => `${show(longestWaitMs / 1_000)} s`],
  ['mean wait', ({ meanWaitMs }) => `${show(meanWaitMs)} ms`],
  ['longest idle', ({ longestIdleMs }) => `${show(longestIdleMs / 1_000)} s`],
  ['no fault near', ({ longestCleanIdleMs }) => `${show(longestCleanIdleMs / 1_000)} s`],
  ['idle', ({ idleMs, wantedMs }) => percent(idleMs, wantedMs)],
  ['violations', ({ violations }) => show(violations)],
  ['seconds', ({ seconds }) => show(seconds)],
];

export function tableOf(sums: readonly Sum[]): string {
  const all = new Sum('all');
  for (const sum of sums) all.add(sum, sum.seconds);
  const rows = [
    COLUMNS.map(([title]) => title),
    ...[...sums, all].map((sum) => COLUMNS.map(([, cell]) => cell(sum))),
  ];
  const widths = COLUMNS.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join('  '),
  );
  const faults = [...all.faults]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([kind, count]) => `${kind} ${show(count)}`);
  return `${lines.join('\n')}\n\nfaults injected: ${faults.join(' · ')}\n`;
}
