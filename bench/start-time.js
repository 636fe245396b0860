/**
 * How long the command takes to start, and how much is installed with it: `node bench/start-time.js [VERSION...]`. Packs the
 * packages as they would be published, unpacks them in a fresh folder, and starts each program in turn, so that a busy machine
 * slows all of them alike. Prints, of 20 starts, the median and the best time, the mean processor time (on Linux), and the ratios
 * to `node -e 0`. On a busy machine only the processor time says something. The first start of each is not counted.
 * VERSION: a version of Node, such as 22 or 24.9.0, which is installed from npm for it. Default: the Node that runs this.
 */
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const STARTS = 20;
const folder = mkdtempSync(join(tmpdir(), 'holdfast-start-'));
const modules = join(folder, 'node_modules');

/** @param {string} command @param {readonly string[]} args */
function run(command, args) {
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd: ROOT,
    encoding: 'utf8',
    env: {
      ...process.env,
      HOLDFAST_STORE: `sqlite:${join(folder, 'locks.db')}`,
    },
  });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} exited ${status}: ${stderr}`);
  return stdout;
}

/** Unpacks a package of this repository beside links to all packages that it needs. */
function install() {
  mkdirSync(modules);
  for (const name of readdirSync(join(ROOT, 'node_modules'))) {
    if (!name.startsWith('holdfast')) symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
  }
  for (const { name, filename } of JSON.parse(
    run(process.execPath, ['packages/pack.js', folder, '--json']),
  )) {
    mkdirSync(join(modules, name));
    run('tar', ['-xzf', join(folder, filename), '-C', join(modules, name), '--strip-components=1']);
  }
}

const MS_PER_TICK = 10;

/** The processor time of all processes that were started and have ended; 0 where the system does not say. */
function startedCpuMs() {
  if (!existsSync('/proc/self/stat')) return 0;
  const [, fields = ''] = readFileSync('/proc/self/stat', 'utf8').split(') ');
  const [user, system] = fields.split(' ').slice(13, 15).map(Number);
  return ((user ?? 0) + (system ?? 0)) * MS_PER_TICK;
}

/** @param {readonly string[]} programs */
function measure(programs) {
  /** @type {number[][]} */
  const times = programs.map(() => []);
  const cpuMs = programs.map(() => 0);
  for (let start = -1; start < STARTS; start++) {
    programs.forEach((program, at) => {
      const [command = '', ...args] = program.split(' ');
      if (start === -1) {
        run(command, args);
        return;
      }
      const begunMs = performance.now();
      const begunCpuMs = startedCpuMs();
      run(command, args);
      times[at]?.push(performance.now() - begunMs);
      cpuMs[at] = (cpuMs[at] ?? 0) + (startedCpuMs() - begunCpuMs) / STARTS;
    });
  }
  return { times: times.map((list) => list.sort((a, b) => a - b)), cpuMs };
}

/**
 * All packages that are installed with one, itself too.
 * @param {string} name @param {boolean} optional @param {Set<string>} found
 */
function installedWith(name, optional, found = new Set()) {
  if (found.has(name)) return found;
  found.add(name);
  const path = join(modules, name, 'package.json');
  const { dependencies = {}, optionalDependencies = {} } = JSON.parse(readFileSync(path, 'utf8'));
  for (const other of Object.keys(optional ? { ...dependencies, ...optionalDependencies } : dependencies)) {
    if (existsSync(join(modules, other, 'package.json'))) installedWith(other, optional, found);
  }
  return found;
}

/** @param {string} path @returns {number} */
function bytesIn(path) {
  const stat = lstatSync(path);
  if (!stat.isDirectory()) return stat.size;
  return readdirSync(path).reduce((sum, name) => sum + bytesIn(join(path, name)), 0);
}

/** @param {string} name */
const megabytes = (name) => bytesIn(`${join(modules, name)}/`) / 1e6;

/** @param {string} version @returns {string} the path of that Node */
function installedNode(version) {
  const place = join(folder, `node-${version}`);
  mkdirSync(place);
  run('npm', ['install', '--prefix', place, '--no-save', '--no-audit', '--no-fund', `node@${version}`]);
  return join(place, 'node_modules/node/bin/node');
}

/** @param {string} node the path of the runtime */
function printStarts(node) {
  const holdfast = `${node} ${join(modules, 'holdfast-cli/bin/holdfast.js')}`;
  const { times, cpuMs } = measure([`${node} -e 0`, `${holdfast} --version`, `${holdfast} run job -- true`]);
  const [[bestOfNode = 0] = [], nodeTimes = []] = [times[0], times[0]];
  const middle = Math.floor(STARTS / 2);
  const version = run(node, ['-p', 'process.versions.node']).trim();
  console.log(`\nNode ${version}, ${STARTS} starts each, in turn, load ${loadavg()[0]?.toFixed(0)}\n`);
  console.log('program                  median    best  processor    by node -e 0: median  best  processor');
  ['node -e 0', 'holdfast --version', 'holdfast run job -- true'].forEach((name, at) => {
    const [best = 0] = times[at] ?? [];
    const median = times[at]?.[middle] ?? 0;
    const cpu = cpuMs[at] ?? 0;
    const cells = [median, best, cpu].map((ms) => `${ms.toFixed(0)} ms`.padStart(6));
    const ratios = [median / (nodeTimes[middle] ?? 1), best / bestOfNode, cpu / (cpuMs[0] || 1)];
    console.log(
      `${name.padEnd(24)} ${cells.join('  ')}    ${ratios.map((ratio) => ratio.toFixed(2).padStart(8)).join(' ')}`,
    );
  });
}

try {
  install();
  const versions = process.argv.slice(2);
  for (const node of versions.length === 0 ? [process.execPath] : versions.map(installedNode))
    printStarts(node);
  console.log('\ninstalled with                  packages    size');
  for (const [name, optional] of /** @type {const} */ ([
    ['holdfast', true],
    ['holdfast-cli', true],
    ['holdfast-cli', false],
    ['holdfast-service', true],
  ])) {
    const names = [...installedWith(name, optional)];
    const size = names.reduce((sum, one) => sum + megabytes(one), 0);
    const title = optional ? name : `${name} --omit=optional`;
    console.log(`${title.padEnd(31)} ${String(names.length).padStart(8)}    ${size.toFixed(1)} MB`);
  }
  const large = [...installedWith('holdfast-cli', true)].map((name) => [name, megabytes(name)]);
  large.sort((a, b) => Number(b[1]) - Number(a[1]));
  console.log(
    `largest: ${large
      .slice(0, 4)
      .map(([name, size]) => `${name} ${Number(size).toFixed(1)} MB`)
      .join(', ')}`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
