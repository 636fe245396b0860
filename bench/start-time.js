/**
 * How long the command takes to start, and how much is installed with it: `node bench/start-time.js`. Packs the packages
 * as they would be published, unpacks them in a fresh folder, and starts each program in turn, so that a busy machine
 * slows all of them alike. Prints medians and the best of 20 starts, and the ratio to `node -e 0`.
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
import { tmpdir } from 'node:os';
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
    env: { ...process.env, HOLDFAST_STORE: `sqlite:${join(folder, 'locks.db')}` },
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
  for (const { name, filename } of JSON.parse(run(process.execPath, ['packages/pack.js', folder]))) {
    mkdirSync(join(modules, name));
    run('tar', ['-xzf', join(folder, filename), '-C', join(modules, name), '--strip-components=1']);
  }
}

/** @param {readonly string[]} programs */
function measure(programs) {
  /** @type {number[][]} */
  const times = programs.map(() => []);
  for (let start = 0; start < STARTS; start++) {
    programs.forEach((program, at) => {
      const [command = '', ...args] = program.split(' ');
      const begunMs = performance.now();
      run(command, args);
      times[at]?.push(performance.now() - begunMs);
    });
  }
  return times.map((list) => list.sort((a, b) => a - b));
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

try {
  install();
  const holdfast = `${process.execPath} ${join(modules, 'holdfast-cli/bin/holdfast.js')}`;
  const programs = [`${process.execPath} -e 0`, `${holdfast} --version`, `${holdfast} run job -- true`];
  const times = measure(programs);
  const [[bestOfNode = 0] = [], nodeTimes = []] = [times[0], times[0]];
  const middle = Math.floor(STARTS / 2);
  console.log(`Node ${process.versions.node}, ${STARTS} starts each, in turn\n`);
  console.log('program                  median    best    median / node -e 0    best / node -e 0');
  ['node -e 0', 'holdfast --version', 'holdfast run job -- true'].forEach((name, at) => {
    const [best = 0] = times[at] ?? [];
    const median = times[at]?.[middle] ?? 0;
    const cells = [`${median.toFixed(0)} ms`.padStart(6), `${best.toFixed(0)} ms`.padStart(6)];
    const ratios = [median / (nodeTimes[middle] ?? 1), best / bestOfNode].map((ratio) => ratio.toFixed(2));
    console.log(
      `${name.padEnd(24)} ${cells.join('  ')}    ${ratios[0]?.padStart(18)}  ${ratios[1]?.padStart(18)}`,
    );
  });
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
