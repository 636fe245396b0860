import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Packed, packInto } from '../packages/projects.js';
import type { Manifest } from './public-api.js';
import { run } from './shell.js';
import { matching, read, root } from './tree.js';

const manifest = JSON.parse(read('packages/holdfast/package.json')) as Manifest;
const subpaths = Object.keys(manifest.exports).map((subpath) => subpath.replace('.', manifest.name));
/** Parts for users of another package, which they import. All others need nothing. */
const NEEDED: Readonly<Record<string, string>> = {
  'holdfast/opentelemetry': '@opentelemetry/api',
  'holdfast/prometheus': 'prom-client',
};
const alone = subpaths.filter((subpath) => !(subpath in NEEDED));
const code = alone.filter((subpath) => !subpath.endsWith('.json'));

const BYTES_MAX = 1_500_000;

let folder: string;
const packed = new Map<string, Packed>();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-pack-'));
  for (const one of await packInto(folder)) packed.set(one.name.replace('holdfast-', ''), one);
  writeFileSync(join(folder, 'package.json'), '{ "private": true }');
  const tarball = `./${packed.get('holdfast')?.filename}`;
  await run('npm', ['install', tarball, '--offline', '--no-audit', '--no-fund'], { cwd: folder });
}, 120_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(['holdfast', 'cli', 'service'])('the tarball of packages/%s', (name) => {
  it('has what is built from the sources, and nothing left from an earlier build', () => {
    const built = packed.get(name)?.files.filter((path) => /^dist\/(?!cjs\/).*\.js$/.test(path));
    const sources = matching(new RegExp(`^packages/${name}/src/.*\\.ts$`)).map((source) =>
      source.replace(`packages/${name}/src/`, 'dist/').replace(/\.ts$/, '.js'),
    );
    expect(built?.toSorted()).toEqual(sources.toSorted());
  });

  it('has nothing else but its papers', () => {
    const others = packed.get(name)?.files.filter((path) => !/^(?:dist|bin|dashboard|man)\//.test(path));
    expect(others?.toSorted()).toEqual(['LICENSE', 'README.md', 'package.json']);
  });
});

/** Parts that have no names when they are imported. Throws for one that is not there. */
async function emptyImports(parts: readonly string[]): Promise<string> {
  const lines = parts.map((subpath) => {
    const json = subpath.endsWith('.json') ? ", { with: { type: 'json' } }" : '';
    return `if (Object.keys(await import('${subpath}'${json})).length === 0) console.log('${subpath}');`;
  });
  return await run(process.execPath, ['--input-type=module', '-e', lines.join('\n')], { cwd: folder });
}

async function emptyRequires(parts: readonly string[]): Promise<string> {
  const lines = parts.map(
    (subpath) => `if (Object.keys(require('${subpath}')).length === 0) console.log('${subpath}');`,
  );
  return await run(process.execPath, ['--input-type=commonjs', '-e', lines.join('\n')], { cwd: folder });
}

const NODE_TYPES = ['--lib', 'es2024', '--types', 'node', '--typeRoots', join(root, 'node_modules/@types')];
/** The globals that Node shares with browsers, and no more. */
const NO_NODE_TYPES = ['--lib', 'es2022,dom', '--types', ''];

async function compileImportsOf(parts: readonly string[], libraries: readonly string[]): Promise<void> {
  const lines = parts.map((subpath, at) => `import * as part${at} from '${subpath}';\nexport { part${at} };`);
  writeFileSync(join(folder, 'esm.mts'), lines.join('\n'));
  writeFileSync(join(folder, 'commonjs.cts'), lines.join('\n'));
  const options = ['--strict', '--noEmit', '--module', 'nodenext', '--target', 'es2022'];
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  await run(process.execPath, [tsc, ...options, ...libraries, 'esm.mts', 'commonjs.cts'], { cwd: folder });
}

describe('the library, installed from its tarball in an empty folder', () => {
  it(`has at most ${BYTES_MAX / 1_000} KB unpacked`, () => {
    const bytes = packed.get('holdfast')?.unpackedSize;
    expect(bytes).toBeGreaterThan(BYTES_MAX / 10);
    expect(bytes).toBeLessThanOrEqual(BYTES_MAX);
  });

  it('has every part for import and for require', async () => {
    expect(alone.length).toBeGreaterThan(20);
    expect(await emptyImports(alone)).toBe('');
    expect(await emptyRequires(alone)).toBe('');
  });

  it.each(Object.entries(NEEDED))('%s says that it needs %s', async (subpath, needed) => {
    const script = `import('${subpath}').catch(({ message }) => console.log(message));`;
    expect(await run(process.execPath, ['-e', script], { cwd: folder })).toContain(`'${needed}'`);
  });

  it.each(['index.js', 'cjs/parts.js'])('prints an error of %s by its own name', async (file) => {
    const script = `import { inspect } from 'node:util';
const { default: parts, ...names } = await import('./node_modules/holdfast/dist/${file}');
const { createLocks } = names.createLocks ? names : parts['.']();
try { createLocks(null); } catch (error) { console.log(inspect(error).split('\\n')[0]); }`;
    const printed = await run(process.execPath, ['--input-type=module', '-e', script], { cwd: folder });
    expect(printed).toMatch(/^InvalidArgumentError: createLocks needs a store/);
  });

  it('has short lines: Node prints the whole line of an uncaught error before its message', () => {
    const files = packed.get('holdfast')?.files.filter((path) => path.endsWith('.js')) ?? [];
    const lines = files.flatMap((path) =>
      readFileSync(join(folder, 'node_modules/holdfast', path), 'utf8').split('\n'),
    );
    expect(lines.length).toBeGreaterThan(1_000);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(1_000);
  });

  it('brings nothing else along', () => {
    expect(existsSync(join(folder, 'node_modules/holdfast/dist/index.js'))).toBe(true);
    expect(existsSync(join(folder, 'node_modules/@photostructure'))).toBe(false);
  });

  it.each([
    [
      'redis://localhost',
      'A client package for Redis is needed, and none is installed: npm install ioredis (or redis, iovalkey).',
    ],
    [
      'postgres://localhost/app',
      'A client package for PostgreSQL is needed, and none is installed: npm install pg (or postgres).',
    ],
  ])('says what to install for %s', async (url, line) => {
    const script = `import('holdfast').then(({ openStore }) => openStore('${url}')).catch(({ message }) => console.log(message));`;
    expect(await run(process.execPath, ['-e', script], { cwd: folder })).toBe(`${line}\n`);
  });
});

describe('the library beside the packages that parts of it are for', () => {
  beforeAll(() => {
    for (const needed of Object.values(NEEDED)) {
      const link = join(folder, 'node_modules', needed);
      mkdirSync(dirname(link), { recursive: true });
      symlinkSync(join(root, 'node_modules', needed), link);
    }
  });

  it('has these parts for import and for require', async () => {
    expect(await emptyImports(Object.keys(NEEDED))).toBe('');
    expect(await emptyRequires(Object.keys(NEEDED))).toBe('');
  });
});

it('the command, unpacked from its tarball beside the library, runs another command under a lock', async () => {
  const modules = join(mkdtempSync(join(folder, 'cli-')), 'node_modules');
  for (const [name, into] of [
    ['holdfast', 'holdfast'],
    ['cli', 'holdfast-cli'],
  ] as const) {
    const home = join(modules, into);
    mkdirSync(home, { recursive: true });
    const tarball = join(folder, packed.get(name)?.filename ?? '');
    await run('tar', ['-xzf', tarball, '-C', home, '--strip-components=1'], { cwd: folder });
  }
  mkdirSync(join(modules, '@photostructure'));
  symlinkSync(join(root, 'node_modules/@photostructure/sqlite'), join(modules, '@photostructure/sqlite'));
  const args = [
    join(modules, 'holdfast-cli/bin/holdfast.js'),
    'run',
    'hello',
    '--',
    'echo',
    'only one of me',
  ];
  const env = { HOLDFAST_STORE: `sqlite:${join(folder, 'locks.db')}` };
  expect(await run(process.execPath, args, { cwd: folder, env })).toBe('only one of me\n');
  // In files that are not there in the repository; and the service, which may be left out, from its own package.
  expect(packed.get('cli')?.files).toContain('dist/holdfast.cjs');
  expect(existsSync(join(root, 'packages/cli/dist/holdfast.cjs'))).toBe(false);
  const serving = run(process.execPath, [...args.slice(0, 1), 'serve'], { cwd: folder, env });
  await expect(serving).rejects.toThrow(
    /holdfast: the lock service is not installed: npm install holdfast-service/,
  );
});

describe('the types of the library', () => {
  it('are there for both kinds of module, and need no skipLibCheck', { timeout: 120_000 }, async () => {
    await compileImportsOf(code, NODE_TYPES);
  });

  it('need neither those of Node nor esnext.disposable', { timeout: 120_000 }, async () => {
    await compileImportsOf(code, NO_NODE_TYPES);
  });

  it('are right for every way to resolve them', { timeout: 120_000 }, async () => {
    const tarball = readFileSync(join(folder, packed.get('holdfast')?.filename ?? ''));
    const result = await checkPackage(createPackageFromTarballData(tarball));
    if (!result.types) throw new Error('The tarball has no types.');
    const problems = result.problems.filter(
      (problem) => !('resolutionKind' in problem && problem.resolutionKind === 'node10'),
    );
    expect(problems).toEqual([]);
  });

  it('are there for parts that other packages are needed for', { timeout: 120_000 }, async () => {
    await compileImportsOf(Object.keys(NEEDED), NODE_TYPES);
  });
});

it('the published store sends Redis the same script as the one that the tests run, without comments', async () => {
  const script = (await import(join(folder, 'node_modules/holdfast/dist/stores/redis/script.js'))) as object;
  const tested = await import('../../packages/holdfast/src/stores/redis/script.js');
  expect(script).toMatchObject({ SCRIPT: tested.SCRIPT });
  expect(tested.SCRIPT).not.toMatch(/^\s*--|^ /m);
  const text = readFileSync(join(folder, 'node_modules/holdfast/dist/stores/redis/lua/usual.js'), 'utf8');
  expect(text).toContain('local function decideUsual');
  expect(text).not.toMatch(/\n *--|\n +local/);
});
