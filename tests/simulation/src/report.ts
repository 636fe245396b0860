/** The table at the end of the command. */
import type { RunResult } from './run-result.js';

const numbers = new Intl.NumberFormat('en-GB', { maximumFractionDigits: 1 });
const show = (value: number): string => numbers.format(value);
const percent = (part: number, whole: number): string => `${show((100 * part) / Math.max(whole, 1))} %`;

/** The sum over the runs of one profile. */
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
  /** Of the workload with the longest mean wait in any run. */
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

  add(result: RunResult | Sum, seconds: number): void {
    this.runs += result instanceof Sum ? result.runs : 1;
    this.grants += result.grants;
    this.changes += result.changes;
    this.handovers += result.handovers;
    this.handoffs += result.handoffs;
    this.losses += result.losses;
    this.timeouts += result.timeouts;
    this.messages += result.messages;
    this.faulty += result.faulty;
    this.placesLost += result.placesLost;
    this.violations += typeof result.violations === 'number' ? result.violations : result.violations.length;
    this.longestWaitMs = Math.max(this.longestWaitMs, result.longestWaitMs);
    this.meanWaitMs = Math.max(this.meanWaitMs, result.meanWaitMs);
    this.longestIdleMs = Math.max(this.longestIdleMs, result.longestIdleMs);
    this.longestCleanIdleMs = Math.max(this.longestCleanIdleMs, result.longestCleanIdleMs);
    this.idleMs += result.idleMs;
    this.wantedMs += result.wantedMs;
    this.seconds += seconds;
    for (const [kind, count] of result.faults) this.faults.set(kind, (this.faults.get(kind) ?? 0) + count);
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
