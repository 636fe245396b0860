/** `require('holdfast')`: on every admitted Node, on Bun and Deno, in Jest, and from TypeScript's CommonJS. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../repository/shell.js';
import { read, root } from '../repository/tree.js';
import { Projects } from './projects.js';
import { nodeCommand, OTHER_NODES, RUNTIMES } from './runtime.js';

const { exports } = JSON.parse(read('packages/holdfast/package.json')) as {
  exports: Record<string, unknown>;
};
const PEERS = ['@opentelemetry/api', 'prom-client', 'croner'];
const parts = Object.keys(exports)
  .filter((part) => !part.endsWith('.json'))
  .map((part) => part.replace('.', 'holdfast'));

const projects = new Projects();
beforeAll(() => projects.pack());
afterAll(() => projects.remove());

/** Reads every part both ways. Prints the parts of which a process has two copies. */
const BOTH = `
const parts = ${JSON.stringify(parts)};
(async () => {
  const twice = [];
  for (const part of parts) {
    const required = require(part);
    const imported = await import(part);
    const names = Object.keys(imported).filter((name) => name !== 'default' && name !== 'module.exports');
    if (names.length === 0) throw new Error(part + ' exports nothing.');
    if (names.some((name) => required[name] !== imported[name])) twice.push(part);
  }
  console.log(JSON.stringify(twice));
})();
`;

async function expectOneCopy([program = '', ...args]: readonly string[]): Promise<void> {
  const project = await projects.make({ 'both.cjs': BOTH }, PEERS);
  expect(await run(program, [...args, 'both.cjs'], { cwd: project })).toBe('[]\n');
}

describe('every part can be required and imported, and a process has one copy of it', () => {
  it.each(Object.entries(RUNTIMES))('on %s', (_, command) => expectOneCopy(command));

  it.each(Object.entries(OTHER_NODES))('on %s', async (_, version) =>
    expectOneCopy(await nodeCommand(version)),
  );
});

const JEST = `
const { createLocks, openStore, AcquireTimeoutError, HoldfastError } = require('holdfast');
const { memoryStore } = require('holdfast/memory');

test('locks', async () => {
  const locks = createLocks(memoryStore());
  const token = await locks.withLock('report', (lease) => lease.token);
  expect(typeof token).toBe('number');
  const held = await locks.acquire('report');
  const error = await locks.acquire('report', { wait: 10 }).catch((caught) => caught);
  expect(error).toBeInstanceOf(AcquireTimeoutError);
  expect(error).toBeInstanceOf(HoldfastError);
  expect(error.name).toBe('AcquireTimeoutError');
  await held.release();
  await locks.close();
});

test('a store by its URL', async () => {
  const locks = createLocks(await openStore('sqlite:' + require('node:path').join(__dirname, 'locks.db')));
  await locks.withLock('report', () => {});
  await locks.close();
});

test('a missing client, and a server that is not there', async () => {
  await expect(openStore('postgres://localhost/app')).rejects.toThrow('npm install pg');
  const locks = createLocks(await openStore('redis://127.0.0.1:1'));
  await expect(locks.tryAcquire('report')).rejects.toThrow('nothing listens at 127.0.0.1:1');
  await locks.close();
});

test.each(${JSON.stringify(parts)})('%s', (part) => {
  expect(Object.keys(require(part)).length).toBeGreaterThan(0);
});
`;

it('every part can be used in Jest, as Jest is installed', { timeout: 300_000 }, async () => {
  const project = await projects.make({ 'lock.test.js': JEST }, [
    ...PEERS,
    'ioredis',
    '@photostructure/sqlite',
  ]);
  const jest = join(root, 'node_modules/jest/bin/jest.js');
  await run(process.execPath, [jest, '--rootDir', project], { cwd: project, timeoutMs: 240_000 });
});

const TYPED = `
import { createLocks, LeaseLostError, type Lease } from 'holdfast';
import { memoryStore } from 'holdfast/memory';
${parts.map((part, at) => `import * as part${at} from '${part}';`).join('\n')}
export const all = [${parts.map((_, at) => `part${at}`).join(', ')}];
const tokenOf = (lease: Lease): number => lease.token;
async function main(): Promise<void> {
  const locks = createLocks(memoryStore());
  console.log((await locks.withLock('report', tokenOf)) > 0, new LeaseLostError('gone').code);
  await locks.close();
}
void main();
`;

it.each(['node16', 'nodenext'])(
  'a CommonJS file of TypeScript compiles with module %s, needs no skipLibCheck, and runs',
  async (module) => {
    const project = await projects.make({ 'program.cts': TYPED }, [...PEERS, '@types/node']);
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const options = [
      '--strict',
      '--module',
      module,
      '--target',
      'es2022',
      '--lib',
      'es2024',
      '--types',
      'node',
    ];
    await run(process.execPath, [tsc, ...options, 'program.cts'], { cwd: project });
    expect(await run(process.execPath, ['program.cjs'], { cwd: project })).toBe('true lease-lost\n');
  },
);
