/** Programs bundled into one file, as for Lambda functions, in a project that has the library and one client only. */
import { mkdirSync, mkdtempSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { basename, dirname, join } from 'node:path';
import * as commonjsPlugin from '@rollup/plugin-commonjs';
import * as jsonPlugin from '@rollup/plugin-json';
import { nodeResolve } from '@rollup/plugin-node-resolve';
import { build as esbuild, transform } from 'esbuild';
import { rollup } from 'rollup';
import { build as vite } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import webpack, { type Stats } from 'webpack';
import { blocks } from '../repository/markdown.js';
import { canRun, PageServers } from '../repository/page-servers.js';
import { run } from '../repository/shell.js';
import { read } from '../repository/tree.js';
import { Projects } from './projects.js';

const servers = new PageServers();
const projects = new Projects();
const elsewhere = join(projects.folder, 'elsewhere');
mkdirSync(elsewhere);

beforeAll(() => projects.pack());
afterAll(async () => {
  await servers.stop();
  projects.remove();
}, 60_000);

/** The first program of a page, or of a section of it, that has these words. */
function programWith(page: string, words: string): string {
  const found = blocks.find((block) => block.page === page && block.code.includes(words));
  if (!found) throw new Error(`${page} has no program with "${words}".`);
  return found.code;
}

type Format = 'esm' | 'cjs';
type Bundle = (project: string, file: string, format: Format) => Promise<unknown>;

/** Clients that are not modules themselves ask for `require`. */
const REQUIRE =
  "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";
const { peerDependencies } = JSON.parse(read('packages/holdfast/package.json')) as Record<string, object>;
const MISSING = new RegExp(
  `^Module not found: Error: Can't resolve '(?:${Object.keys(peerDependencies ?? {}).join('|')})`,
);
const OURS = /node_modules\/holdfast\//;
const UNRESOLVED =
  /open-client\.js" *, but could not be resolved|sdk-commands\.js" *, but could not be resolved/;
/** A faster part of pg, which is not installed. */
const EXTERNAL = ['pg-native'];

/** Their types say that the module itself is what is exported. */
const { default: COMMONJS } = commonjsPlugin as unknown as { default: typeof commonjsPlugin.default.default };
const { default: JSON_FILES } = jsonPlugin as unknown as { default: typeof jsonPlugin.default.default };

/** As each is used by its own documentation for a program of Node's in one file. */
const BUNDLERS: Readonly<Record<string, Bundle>> = {
  async esbuild(project, file, format) {
    const { warnings } = await esbuild({
      absWorkingDir: project,
      entryPoints: ['program.mjs'],
      outfile: file,
      bundle: true,
      platform: 'node',
      target: 'node20',
      format,
      logLevel: 'silent',
      external: EXTERNAL,
      ...(format === 'esm' ? { banner: { js: REQUIRE } } : {}),
    });
    expect(warnings).toEqual([]);
  },
  async webpack(project, file, format) {
    const isModule = format === 'esm';
    const output = {
      path: dirname(file),
      filename: basename(file),
      ...(isModule ? { module: true } : {}),
      library: { type: isModule ? 'module' : 'commonjs2' },
    };
    const stats = await new Promise<Stats | undefined>((resolve, reject) => {
      webpack(
        {
          context: project,
          entry: './program.mjs',
          mode: 'production',
          target: 'node20',
          output,
          externals: EXTERNAL,
          externalsType: 'node-commonjs',
          ...(isModule ? { experiments: { outputModule: true } } : {}),
        },
        (error, result) => (error ? reject(error) : resolve(result)),
      );
    });
    const { errors, warnings = [] } = stats?.toJson({ errors: true, warnings: true }) ?? {};
    expect(errors).toEqual([]);
    // `openStore` tries the clients of all stores. webpack looks for them before it finds that nobody calls it.
    expect(warnings.filter(({ message }) => !MISSING.test(message))).toEqual([]);
  },
  async rollup(project, file, format) {
    const warnings: string[] = [];
    const bundle = await rollup({
      input: join(project, 'program.mjs'),
      external: (id) => isBuiltin(id) || EXTERNAL.includes(id),
      plugins: [
        nodeResolve({ preferBuiltins: true }),
        COMMONJS({ ignoreDynamicRequires: true }),
        JSON_FILES(),
      ],
      onwarn: (warning) => void warnings.push(warning.message),
    });
    await bundle.write({ file, format, inlineDynamicImports: true });
    await bundle.close();
    // Some clients import themselves in a circle.
    expect(warnings.filter((message) => OURS.test(message) && !UNRESOLVED.test(message))).toEqual([]);
  },
  async vite(project, file, format) {
    await vite({
      root: project,
      configFile: false,
      logLevel: 'silent',
      ssr: { noExternal: true, external: EXTERNAL },
      build: {
        ssr: 'program.mjs',
        outDir: dirname(file),
        emptyOutDir: false,
        rollupOptions: { output: { format, entryFileNames: basename(file), codeSplitting: false } },
      },
    });
  },
};

/** Where nothing is installed: all that the program needs is in its one file. */
async function bundleTo(
  bundler: string,
  code: string,
  clients: readonly string[],
  format: Format,
): Promise<string> {
  const { code: program } = await transform(code, { loader: 'ts', target: 'node20' });
  const project = await projects.make({ 'program.mjs': program }, clients);
  const file = join(
    mkdtempSync(join(elsewhere, 'bundle-')),
    format === 'esm' ? 'program.mjs' : 'program.cjs',
  );
  await BUNDLERS[bundler]?.(project, file, format);
  return file;
}

const LAMBDA = programWith('docs/stores/dynamodb.md', 'export async function handler');
const REDIS = programWith('docs/stores/redis.md', 'redisStore(client)');
const POSTGRES = programWith('docs/stores/postgres.md', 'createLocks(postgresStore(pool))');
const SDK = '@aws-sdk/client-dynamodb';

describe.each(Object.keys(BUNDLERS))('%s', (bundler) => {
  it.runIf(canRun(REDIS)).each(['esm', 'cjs'] as const)(
    'bundles a program with Redis and ioredis as %s, and it runs from its one file',
    { timeout: 240_000 },
    async (format) => {
      // CommonJS has no top-level await.
      const code =
        format === 'esm'
          ? REDIS
          : REDIS.replace(/^((?:import .*\n)+)([\s\S]*)$/, '$1(async () => {\n$2\n})();');
      const file = await bundleTo(bundler, code, ['ioredis'], format);
      const env = await servers.envFor(REDIS);
      expect(await run(process.execPath, [file], { cwd: elsewhere, env })).toMatch(
        /^only one of us.*token \d+\n$/,
      );
    },
  );

  it.runIf(canRun(POSTGRES))(
    'bundles a program with PostgreSQL and pg, and it runs from its one file',
    { timeout: 240_000 },
    async () => {
      const file = await bundleTo(bundler, POSTGRES, ['pg'], 'esm');
      const env = await servers.envFor(POSTGRES);
      expect(await run(process.execPath, [file], { cwd: elsewhere, env })).toMatch(
        /^only one of us.*token \d+\n$/,
      );
    },
  );

  it.runIf(canRun(LAMBDA))(
    'bundles the handler of a Lambda function for require, as CDK and SAM do, and it runs from its one file',
    { timeout: 240_000 },
    async () => {
      const handler = LAMBDA.replace(/^console\.log\(await handler.*$/m, '');
      const file = await bundleTo(bundler, handler, [SDK], 'cjs');
      const env = await servers.envFor(LAMBDA);
      const call = `require('${file}').handler({ orderId: '7' }).then(console.log)`;
      expect(await run(process.execPath, ['-e', call], { cwd: elsewhere, env })).toMatch(
        /^charged under token/,
      );
    },
  );
});

/** As where one package of an application is CommonJS. */
const BOTH = `import { createRequire } from 'node:module';
import * as imported from 'holdfast';
import required from './required.cjs';
console.log(imported.HoldfastError === required.HoldfastError);`;

it.each(['esbuild', 'webpack', 'vite'])(
  'a bundle of %s has one copy of what is imported and required',
  async (bundler) => {
    const project = await projects.make({
      'program.mjs': BOTH,
      'required.cjs': "module.exports = require('holdfast');",
    });
    const file = join(mkdtempSync(join(elsewhere, 'bundle-')), 'program.mjs');
    await BUNDLERS[bundler]?.(project, file, 'esm');
    expect(await run(process.execPath, [file], { cwd: elsewhere })).toBe('true\n');
  },
);

const OPEN = `import { createLocks, openStore } from 'holdfast';
try {
  const locks = createLocks(await openStore(process.env.REDIS_URL ?? 'redis://localhost'));
  console.log((await locks.acquire('job')).key);
  await locks.close();
} catch (error) {
  console.log(String(error));
}`;

it.runIf(canRun(OPEN))('a bundle opens a store by its URL with the client that was installed', async () => {
  const file = await bundleTo('esbuild', OPEN, ['ioredis'], 'esm');
  expect(await run(process.execPath, [file], { cwd: elsewhere, env: await servers.envFor(OPEN) })).toBe(
    'job\n',
  );
});

it('a bundle without a client says what to install', async () => {
  const project = await projects.make({ 'program.mjs': OPEN });
  const file = join(mkdtempSync(join(elsewhere, 'bundle-')), 'program.mjs');
  await esbuild({
    absWorkingDir: project,
    entryPoints: ['program.mjs'],
    outfile: file,
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'silent',
  });
  const words =
    'UnsupportedError: A client package for Redis is needed, and none is installed: npm install ioredis (or redis, iovalkey).';
  expect(await run(process.execPath, [file], { cwd: elsewhere })).toBe(`${words}\n`);
});
