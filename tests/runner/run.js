// @ts-check
/**
 * Runs the tests of a project (`npm test`). On a machine with busy cores, or one that is itself suspended for a moment, a process
 * may stand still at any time. So a file that failed beside all others is run once more, alone, and that counts. The report
 * names it.
 *
 * No second run: for a test of exclusion, where once is too often; when many files failed; when vitest itself broke.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';

/** @typedef {{ fullName: string, status: string, failureMessages: string[] }} TestReport */
/** @typedef {{ name: string, status: string, message: string, assertionResults: TestReport[] }} FileReport */

/** More than a busy machine explains. */
const AGAIN_MAX = 4;
const EXCLUSION =
  /overlap|exclusiv|exclusion|two holders|never two|one at a time|one is inside|tokens? rise|violat/i;

const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs');

/** @param {readonly string[]} args @param {NodeJS.ProcessEnv} [more] @returns {Promise<number>} */
async function run(args, more = {}) {
  const env = { ...process.env, ...more };
  const child = spawn(process.execPath, [vitest, 'run', ...args], { stdio: 'inherit', env });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve(code ?? 1));
  });
}

/** @param {string} file @param {string} otherwise where vitest ended before it wrote the file */
async function textOf(file, otherwise) {
  return await readFile(file, 'utf8').catch((/** @type {NodeJS.ErrnoException} */ error) => {
    if (error.code === 'ENOENT') return otherwise;
    throw error;
  });
}

/** @param {string} file @returns {Promise<readonly FileReport[]>} */
async function failedIn(file) {
  /** @type {{ testResults: FileReport[] }} */
  const { testResults } = JSON.parse(await textOf(file, '{"testResults":[]}'));
  return testResults.filter(({ status }) => status === 'failed');
}

/** What failed in a file: its tests, or the file as a whole. @param {FileReport} report @returns {string[]} */
function failuresOf({ message, assertionResults }) {
  const tests = assertionResults.filter(({ status }) => status === 'failed');
  if (tests.length === 0) return [`the file itself: ${message}`];
  return tests.map(
    ({ fullName, failureMessages }) => `${fullName}: ${(failureMessages[0] ?? '').split('\n', 1)[0]}`,
  );
}

/** @param {readonly string[]} lines */
function say(...lines) {
  process.stdout.write(`${lines.join('\n')}\n`);
}

const folder = await mkdtemp(join(tmpdir(), 'holdfast-run-'));
try {
  const report = join(folder, 'report.json');
  const args = process.argv.slice(2);
  const unhandled = join(folder, 'unhandled');
  const reporters = ['default', 'json', join(import.meta.dirname, 'unhandled-errors.js')];
  process.exitCode = await run(
    [...args, ...reporters.map((name) => `--reporter=${name}`), `--outputFile.json=${report}`],
    { HOLDFAST_UNHANDLED_FILE: unhandled },
  );
  if (process.exitCode !== 0) {
    const failed = await failedIn(report);
    const files = failed.map(({ name }) => relative(process.cwd(), name));
    const grave = failed.flatMap(failuresOf).filter((failure) => EXCLUSION.test(failure));
    if (grave.length > 0) {
      say('', 'No second run: exclusion is at stake.', ...grave.map((failure) => `  ${failure}`));
    } else if ((await textOf(unhandled, 'unknown')) !== '0') {
      say('', 'No second run: an error belongs to no test.');
    } else if (files.length > 0 && files.length <= AGAIN_MAX) {
      say('', 'Once more, alone:', ...files.map((file) => `  ${file}`));
      process.exitCode = await run([
        ...args.filter((arg) => !arg.startsWith('--shard')),
        '--maxWorkers=1',
        ...files,
      ]);
      if (process.exitCode === 0) {
        say('', 'Passed only alone:', ...failed.flatMap(failuresOf).map((failure) => `  ${failure}`));
      }
    }
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
