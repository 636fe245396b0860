/**
 * How large programs get that import the library: `npm run sizes`. Bundles each with esbuild into one minified file for Node 20,
 * without clients of stores, from the packages as they are published, and compresses it. Peers are bundled in the same way,
 * each with its own store for the same server. Prints the table of docs/packages.md.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const CLIENTS = ['ioredis', 'pg', 'knex', '@aws-sdk/*', 'kysely'];
/** @type {readonly (readonly [name: string, part: string, store: string])[]} */
const STORES = [
  ['memory', 'memory', 'memoryStore'],
  ['HTTP', 'http', 'httpStore'],
  ['SQLite', 'sqlite', 'sqliteStore'],
  ['Redis', 'redis', 'redisStore'],
  ['PostgreSQL', 'postgres', 'postgresStore'],
  ['MySQL', 'mysql', 'mysqlStore'],
  ['DynamoDB', 'dynamodb', 'dynamodbStore'],
  ['Firestore', 'firestore', 'firestoreStore'],
  ['NATS', 'nats', 'natsStore'],
  ['etcd', 'etcd', 'etcdStore'],
];
const PEERS = {
  redlock: "export { default } from 'redlock';",
  'redis-semaphore': "export { Mutex } from 'redis-semaphore';",
  '@verrou/core':
    "export { Verrou } from '@verrou/core'; export { redisStore } from '@verrou/core/drivers/redis';",
};

/** @param {string} contents @param {string} resolveDir */
async function sizesOf(contents, resolveDir) {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir },
    bundle: true,
    minify: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    write: false,
    logLevel: 'error',
    external: CLIENTS,
  });
  const code = outputFiles[0]?.contents ?? new Uint8Array();
  return [code.length, gzipSync(code, { level: 9 }).length, brotliCompressSync(code).length];
}

/** @param {string} title @param {readonly number[]} sizes */
function row(title, sizes) {
  console.log(`| ${title} | ${sizes.map((bytes) => (bytes / 1_000).toFixed(1)).join(' | ')} |`);
}

const folder = mkdtempSync(join(tmpdir(), 'holdfast-sizes-'));
try {
  const packed = JSON.parse(
    execFileSync(process.execPath, ['packages/pack.js', folder, '--json'], { cwd: ROOT, encoding: 'utf8' }),
  );
  const home = join(folder, 'node_modules/holdfast');
  mkdirSync(home, { recursive: true });
  execFileSync('tar', ['-xzf', join(folder, packed[0].filename), '-C', home, '--strip-components=1']);
  console.log('| bundle | minified KB | gzip -9 KB | brotli KB |\n| --- | --- | --- | --- |');
  row('`createLocks` alone', await sizesOf("export { createLocks } from 'holdfast';", folder));
  for (const [title, part, store] of STORES) {
    const code = `export { createLocks } from 'holdfast'; export { ${store} } from 'holdfast/${part}';`;
    row(`\`createLocks\`, ${title}`, await sizesOf(code, folder));
  }
  for (const [name, code] of Object.entries(PEERS)) {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8'));
    const link = join(folder, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', name), link);
    row(`${name} ${version}, Redis`, await sizesOf(code, folder));
  }
  console.log('\n| package | tarball KB | unpacked KB |\n| --- | --- | --- |');
  for (const { name, size, unpackedSize } of packed) {
    console.log(`| ${name} | ${Math.round(size / 1_000)} | ${Math.round(unpackedSize / 1_000)} |`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
