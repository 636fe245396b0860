/** The report for people, as tables: aligned plain text for the terminal, Markdown for the docs. */
import { figureOf } from './comparison.js';
import { FAMILIES, nameOf } from './families.js';
import { LABELS, sizesFor, THROUGHPUT } from './plan.js';
import { ratiosOf } from './targets.js';
import { number, percent, ratio } from './words.js';

/** @typedef {import('./types.d.ts').Report} Report */
/** @typedef {import('./types.d.ts').Outcome} Outcome */

/** The first row is the heading of the columns. @typedef {{ title: string, rows: readonly (readonly string[])[] }} Table */

/** @param {Report} report */
export function textOf(report) {
  const parts = tablesOf(report).map(alignedText);
  if (report.failures.length > 0) parts.push(`Failed runs\n  ${report.failures.join('\n  ')}\n`);
  if (report.quick) parts.push('A quick run shows that everything works. Its figures mean nothing.\n');
  return parts.join('\n');
}

/** @param {Report} report */
export function markdownOf(report) {
  return tablesOf(report)
    .map(({ title, rows }) => {
      const [heading = [], ...body] = rows.map((row) => `| ${row.join(' | ')} |`);
      const rule = `| ${(rows[0] ?? []).map((_, column) => (column === 0 ? '---' : '---:')).join(' | ')} |`;
      return `### ${title}\n\n${[heading, rule, ...body].join('\n')}\n`;
    })
    .join('\n');
}

/** Without those that this run has nothing for. @param {Report} report @returns {Table[]} */
function tablesOf(report) {
  const { outcomes } = report;
  return [
    ...FAMILIES.map((family) => throughput(outcomes, family)),
    ...FAMILIES.map((family) => times(outcomes, family)),
    ...FAMILIES.map((family) => costs(outcomes, family)),
    contention(outcomes),
    ...FAMILIES.map((family) => holding(report, family)),
    idling(report),
    killing(report),
    targets(report),
  ].filter(({ rows }) => rows.length > 1);
}

/** @param {readonly Outcome[]} outcomes @param {(typeof FAMILIES)[number]} family @returns {Table} */
function throughput(outcomes, { title, subject, peers, minimums }) {
  const others = [...peers, ...minimums];
  const rows = THROUGHPUT.flatMap((workload) => {
    const own = figureOf(outcomes, subject, workload, 'cyclesPerSecond');
    const cells = others.map((other) => {
      const rate = figureOf(outcomes, other, workload, 'cyclesPerSecond');
      if (rate === undefined) return '–';
      return own === undefined ? number(rate) : `${number(rate)} (${ratio(own / rate)})`;
    });
    const wanted = ratiosOf(outcomes, subject, workload)
      .map(({ atLeast, best, peer }) => `${ratio(atLeast)} ${best ? 'the best peer' : peer}`)
      .join(', ');
    const shown = [own === undefined ? '–' : number(own), ...cells];
    return shown.every((cell) => cell === '–') ? [] : [[LABELS[workload], ...shown, wanted]];
  });
  return {
    title: `${title}: cycles per second, median (in brackets: Holdfast's figure divided by this one)`,
    rows: [['', subject, ...others, 'target'], ...rows],
  };
}

/** On a server the time of one cycle counts, not only how many go by. @param {readonly Outcome[]} outcomes @param {(typeof FAMILIES)[number]} family @returns {Table} */
function times(outcomes, { title, subject, peers, minimums, reach }) {
  /** @type {readonly (readonly [string, import('./types.d.ts').WorkloadName, string])[]} */
  const columns = [
    ['cycle p50, µs', 'sequential', 'p50Us'],
    ['cold', 'sequential', 'coldP50Us'],
    ['round trips per cycle', 'sequential', 'callsPerCycle'],
    ['hand-over p50, ms', 'handover', 'p50Ms'],
    ['hand-over p99, ms', 'handover', 'p99Ms'],
  ];
  const contenders = reach === 'network' ? [subject, ...peers, ...minimums] : [];
  return {
    title: `${title}: one cycle, and from one process to another`,
    rows: rowsOf(outcomes, contenders, columns),
  };
}

/** What a cycle costs the processor, whoever waits for what. @param {readonly Outcome[]} outcomes @param {(typeof FAMILIES)[number]} family @returns {Table} */
function costs(outcomes, { title, subject, peers, minimums, reach }) {
  /** @type {readonly (readonly [string, import('./types.d.ts').WorkloadName, string])[]} */
  const columns = [
    ['client, sequential', 'sequential', 'clientCpuUs'],
    ['client, 64 in flight', 'in-flight', 'clientCpuUs'],
    ['client, fresh keys', 'fresh', 'clientCpuUs'],
    ...(reach === 'network'
      ? /** @type {const} */ ([
          ['server, sequential', 'sequential', 'serverCpuUs'],
          ['server, 64 in flight', 'in-flight', 'serverCpuUs'],
        ])
      : []),
    ['MB left by fresh keys', 'fresh-in-flight', 'heapLeftMb'],
  ];
  return {
    title: `${title}: processor time of a cycle, µs`,
    rows: rowsOf(outcomes, [subject, ...peers, ...minimums], columns),
  };
}

/** @param {readonly Outcome[]} outcomes @param {readonly string[]} contenders @param {readonly (readonly [string, import('./types.d.ts').WorkloadName, string])[]} columns */
function rowsOf(outcomes, contenders, columns) {
  const rows = contenders.flatMap((contender) => {
    const cells = columns.map(([, workload, figure]) => {
      const value = figureOf(outcomes, contender, workload, figure);
      return value === undefined ? '–' : number(value);
    });
    return cells.every((cell) => cell === '–') ? [] : [[contender, ...cells]];
  });
  return [['', ...columns.map(([heading]) => heading)], ...rows];
}

/** @param {readonly Outcome[]} outcomes @returns {Table} */
function contention(outcomes) {
  const rows = outcomes.flatMap(({ contender, workload, figures }) => {
    const { jain = 0, overlaps = 0, refusedReleases = 0 } = figures;
    if (workload !== 'contended' && workload !== 'across') return [];
    const name = workload === 'across' ? `${nameOf(contender)}, 4 processes` : nameOf(contender);
    return [[name, jain.toFixed(4), number(overlaps), number(refusedReleases)]];
  });
  return {
    title: '16 contenders on one key: fairness, and what went wrong',
    rows: [['', 'Jain index', 'two holders at once', 'releases refused'], ...rows],
  };
}

/** @param {Report} report @param {(typeof FAMILIES)[number]} family @returns {Table} */
function holding({ outcomes, sizes }, family) {
  const { leases, ttlMs } = sizesFor(family, sizes);
  const rows = outcomes.flatMap(({ engine, contender, workload, figures }) => {
    if (workload !== 'held' || engine !== family.engine) return [];
    const { storeCallsPerSecond = 0, timers = 0, heapBytesPerLease = 0, cpuShare = 0 } = figures;
    return [
      [contender, number(storeCallsPerSecond), number(timers), number(heapBytesPerLease), percent(cpuShare)],
    ];
  });
  return {
    title: `${family.title}: ${number(leases)} leases held, ttl ${number(ttlMs / 1_000)} s`,
    rows: [['', 'store calls per second', 'timers', 'heap bytes per lease', 'processor'], ...rows],
  };
}

/** @param {Report} report @returns {Table} */
function idling({ outcomes, sizes }) {
  const rows = outcomes.flatMap(({ contender, workload, figures }) => {
    if (workload !== 'idle') return [];
    const {
      callsPerSecondOfOne = 0,
      callsPerSecondOfAll = 0,
      cpuShareOfOne = 0,
      cpuShareOfAll = 0,
    } = figures;
    return [
      [
        nameOf(contender),
        number(callsPerSecondOfOne),
        number(callsPerSecondOfAll),
        percent(cpuShareOfOne),
        percent(cpuShareOfAll),
      ],
    ];
  });
  const all = `${number(sizes.waiters)} waiters`;
  return {
    title: 'Idle waiters on one key: store calls per second, processor',
    rows: [['', 'calls, 1 waiter', `calls, ${all}`, 'processor, 1', `processor, ${all}`], ...rows],
  };
}

/** @param {Report} report @returns {Table} */
function killing({ outcomes }) {
  const rows = outcomes.flatMap(({ contender, workload, figures }) => {
    if (workload !== 'killed') return [];
    const { p50Ms = 0, p99Ms = 0, ttlMs = 0, trials = 0 } = figures;
    return [[nameOf(contender), number(p50Ms), number(p99Ms), number(ttlMs), number(trials)]];
  });
  return {
    title: 'The holder is killed: milliseconds until the next waiter has its turn',
    rows: [['', 'p50', 'p99', 'ttl', 'trials'], ...rows],
  };
}

/** @param {Report} report @returns {Table} */
function targets({ verdicts }) {
  const rows = verdicts.map(({ what, target, measured, reached }) => {
    return [what, target, measured, reached ? 'reached' : 'NOT REACHED'];
  });
  return { title: 'Targets', rows: [['', 'target', 'measured', ''], ...rows] };
}

/** @param {Table} table */
function alignedText({ title, rows }) {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  );
  const lines = rows.map((row) =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd(),
  );
  return `${title}\n  ${lines.join('\n  ')}\n`;
}
