/** Programs bundled into one file, as for Lambda functions, in a project that has the library and one client only. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { build, type Message } from 'esbuild';
import { afterAll, expect, it } from 'vitest';
import { blocks } from './markdown.js';
import { canRun, PageServers } from './page-servers.js';
import { run } from './shell.js';
import { root } from './tree.js';

const servers = new PageServers();
const folder = mkdtempSync(join(tmpdir(), 'holdfast-bundle-'));
/** Nothing is installed here: all that a program needs is in its one file. */
const elsewhere = join(folder, 'elsewhere');
mkdirSync(elsewhere);

afterAll(async () => {
  await servers.stop();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

/** The first program of a page, or of a section of it, that has these words. */
function programWith(page: string, words: string): string {
  const found = blocks.find((block) => block.page === page && block.code.includes(words));
  if (!found) throw new Error(`${page} has no program with "${words}".`);
  return found.code;
}

interface Bundled {
  readonly file: string;
  readonly warnings: readonly Message[];
}

async function bundle(code: string, client: string | null, format: 'esm' | 'cjs'): Promise<Bundled> {
  const project = mkdtempSync(join(folder, 'project-'));
  const modules = join(project, 'node_modules');
  for (const part of ['package.json', 'dist']) {
    cpSync(join(root, 'packages/holdfast', part), join(modules, 'holdfast', part), { recursive: true });
  }
  if (client !== null) {
    mkdirSync(dirname(join(modules, client)), { recursive: true });
    symlinkSync(join(root, 'node_modules', client), join(modules, client));
  }
  writeFileSync(join(project, 'program.ts'), code);
  const file = join(
    mkdtempSync(join(elsewhere, 'bundle-')),
    format === 'esm' ? 'program.mjs' : 'program.cjs',
  );
  const require =
    "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";
  const { warnings } = await build({
    absWorkingDir: project,
    entryPoints: ['program.ts'],
    outfile: file,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format,
    logLevel: 'silent',
    // Clients that are not modules themselves ask for `require`.
    ...(format === 'esm' ? { banner: { js: require } } : {}),
  });
  return { file, warnings };
}

const LAMBDA = programWith('docs/stores/dynamodb.md', 'export async function handler');
const REDIS = programWith('docs/stores/redis.md', 'redisStore(client)');

it.runIf(canRun(LAMBDA))(
  "the Lambda page's program is bundled where the SDK is the only client, and runs from its one file",
  async () => {
    const { file, warnings } = await bundle(LAMBDA, '@aws-sdk/client-dynamodb', 'esm');
    expect(warnings).toEqual([]);
    const env = await servers.envFor(LAMBDA);
    expect(await run(process.execPath, [file], { cwd: elsewhere, env })).toMatch(
      /^charged under token \d+\n$/,
    );
  },
  120_000,
);

it.runIf(canRun(LAMBDA))(
  'its handler is bundled for require, as CDK and SAM do, and runs from its one file',
  async () => {
    const handler = LAMBDA.replace(/^console\.log\(await handler.*$/m, '');
    const { file, warnings } = await bundle(handler, '@aws-sdk/client-dynamodb', 'cjs');
    expect(warnings).toEqual([]);
    const env = await servers.envFor(LAMBDA);
    const call = `require('${file}').handler({ orderId: '7' }).then(console.log)`;
    expect(await run(process.execPath, ['-e', call], { cwd: elsewhere, env })).toMatch(
      /^charged under token/,
    );
  },
  120_000,
);

it.runIf(canRun(REDIS))(
  "the Redis page's program is bundled where ioredis is the only client, and runs from its one file",
  async () => {
    const { file, warnings } = await bundle(REDIS, 'ioredis', 'esm');
    expect(warnings).toEqual([]);
    const env = await servers.envFor(REDIS);
    expect(await run(process.execPath, [file], { cwd: elsewhere, env })).toMatch(
      /^only one of us.*token \d+\n$/,
    );
  },
  120_000,
);

const OPEN = `import { createLocks, openStore } from 'holdfast';
try {
  const locks = createLocks(await openStore(process.env.REDIS_URL ?? 'redis://localhost'));
  console.log((await locks.acquire('job')).key);
  await locks.close();
} catch (error) {
  console.log(String(error));
}`;

it.runIf(canRun(OPEN))(
  'a bundle opens a store by its URL with the client that was installed',
  async () => {
    const { file } = await bundle(OPEN, 'ioredis', 'esm');
    expect(await run(process.execPath, [file], { cwd: elsewhere, env: await servers.envFor(OPEN) })).toBe(
      'job\n',
    );
  },
  120_000,
);

it('a bundle without a client says what to install', async () => {
  const { file } = await bundle(OPEN, null, 'esm');
  const words =
    'UnsupportedError: A client package for Redis is needed, and none is installed: npm install ioredis (or redis, iovalkey).';
  expect(await run(process.execPath, [file], { cwd: elsewhere })).toBe(`${words}\n`);
});
