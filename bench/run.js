#!/usr/bin/env node
/**
 * The benchmark against the peers: every run in a process of its own, repetitions interleaved, medians, one report.
 * It measures and compares; it never fails because a figure is low. Exit 1 means that a run did not work.
 */
import { fork } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus, loadavg, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { updatePage } from './docs-page.js';
import { jainIndex, medians } from './figures.js';
import { FULL, PROCESSES, planOf, QUICK } from './plan.js';
import { chartOf } from './svg.js';
import { textOf } from './table.js';
import { verdictsOn } from './targets.js';

/** @typedef {import('./types.d.ts').Figures} Figures */
/** @typedef {import('./types.d.ts').Outcome} Outcome */
/** @typedef {import('./types.d.ts').Report} Report */
/** @typedef {import('./types.d.ts').Task} Task */

const HELP = `npm run bench -- [options]

  --quick            a short run that shows that everything works; its figures mean nothing
  --json             the report as JSON on standard output
  --svg FILE         writes the chart to FILE
  --page FILE        puts the tables into FILE, between the marks that docs/benchmarks.md has
  --repetitions N    how often each throughput run is made (5)
  --only TEXT        only runs whose workload/contender contains TEXT, such as contended/ or in-flight/verrou
`;
const RUN_MS_MAX = 120_000;
const START_TOGETHER_MS = 500;
const PACKAGES = ['holdfast', '@verrou/core', 'async-mutex', 'proper-lockfile', '@photostructure/sqlite'];

/** @param {Task} task @returns {Promise<Figures>} */
function runChild(task) {
  return new Promise((resolve, reject) => {
    const child = fork(new URL('./child.js', import.meta.url), [JSON.stringify(task)], {
      execArgv: ['--expose-gc'],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    let complaint = '';
    /** @type {Figures | undefined} */
    let figures;
    const limit = setTimeout(() => child.kill('SIGKILL'), RUN_MS_MAX);
    child.stderr?.on('data', (chunk) => {
      complaint += chunk;
    });
    child.on('message', (message) => {
      figures = /** @type {Figures} */ (message);
    });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(limit);
      if (figures && code === 0) resolve(figures);
      else
        reject(
          new Error(`ended with ${signal ?? code}: ${complaint.trim().split('\n').slice(0, 8).join(' | ')}`),
        );
    });
  });
}

/** One child, or where processes contend, several at once, whose figures are added up. @param {Omit<Task, 'startAt'>} task */
async function run(task) {
  if (task.workload !== 'across') return runChild({ ...task, startAt: 0 });
  const startAt = Date.now() + START_TOGETHER_MS;
  const parts = await Promise.all(Array.from({ length: PROCESSES }, () => runChild({ ...task, startAt })));
  const of = (/** @type {string} */ name) => parts.map((figures) => figures[name] ?? 0);
  const sum = (/** @type {string} */ name) => of(name).reduce((total, value) => total + value, 0);
  const cyclesPerSecond = sum('cyclesPerSecond');
  return { cyclesPerSecond, jain: jainIndex(of('cyclesPerSecond')), cpuShare: sum('cpuShare') };
}

/** @param {import('./types.d.ts').Sizes} sizes @param {string | undefined} only */
async function measure(sizes, only) {
  const plan = planOf(sizes, only);
  if (plan.length === 0) throw new Error(`No run matches --only ${only}.`);
  /** @type {Map<string, { contender: string, workload: import('./types.d.ts').WorkloadName, repetitions: Figures[] }>} */
  const runs = new Map();
  const failures = [];
  let loadHighest = 0;
  for (const [index, { contender, workload }] of plan.entries()) {
    progress(`${index + 1}/${plan.length}  ${workload}  ${contender}`);
    loadHighest = Math.max(loadHighest, loadavg()[0] ?? 0);
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-'));
    const name = `${workload}/${contender}`;
    try {
      const figures = await run({ contender, workload, sizes, folder });
      const known = runs.get(name) ?? { contender, workload, repetitions: [] };
      known.repetitions.push(figures);
      runs.set(name, known);
    } catch (error) {
      failures.push(`${name} ${error instanceof Error ? error.message : error}`);
    } finally {
      await rm(folder, { recursive: true, force: true });
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

async function versionsUsed() {
  /** @type {Record<string, string>} */
  const versions = { node: process.versions.node };
  for (const name of PACKAGES) {
    const manifest = new URL(`../node_modules/${name}/package.json`, import.meta.url);
    versions[name] = JSON.parse(await readFile(manifest, 'utf8')).version;
  }
  return versions;
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
  const sizes = { ...(values.quick ? QUICK : FULL) };
  if (values.repetitions) sizes.repetitions = Math.max(1, Number.parseInt(values.repetitions, 10) || 1);
  const machine = {
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    processors: availableParallelism(),
    memoryGb: Math.round(totalmem() / 2 ** 30),
    loadBefore: Math.round((loadavg()[0] ?? 0) * 100) / 100,
  };
  const { outcomes, failures, loadHighest } = await measure(sizes, values.only);
  const versions = await versionsUsed();
  /** @type {Report} */
  const report = {
    quick: values.quick,
    machine: { ...machine, loadHighest },
    versions,
    sizes,
    outcomes,
    verdicts: verdictsOn(outcomes),
    failures,
  };
  process.stdout.write(values.json ? `${JSON.stringify(report, null, 2)}\n` : textOf(report));
  if (values.page) await updatePage(values.page, report);
  if (values.svg) await writeFile(values.svg, chartOf(report));
  if (failures.length > 0) process.exitCode = 1;
}

await main();
