/** The command as few files: for the published package, and for the tests of the command. */
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nodeResolve } from '@rollup/plugin-node-resolve';
import { transform } from 'esbuild';
import { rollup } from 'rollup';

const HOME = fileURLToPath(new URL('.', import.meta.url));
const FROM = join(HOME, 'cli/dist');
const MAIN = join(FROM, 'main.js');
const STREAMS = join(FROM, 'printing/standard-streams.js');
const SQLITE = join(HOME, 'holdfast/dist/stores/sqlite/from-url.js');
const PERFORMANCE = join(FROM, 'performance.js');

export const NODE = /** @type {const} */ ({
  platform: 'node',
  target: 'node20',
  minify: true,
  // Node prints the whole line of an uncaught error before its message.
  lineLimit: 200,
  legalComments: 'none',
  logLevel: 'warning',
});

const STORE = /holdfast\/dist\/stores\/([\w-]+)\/(?<!\/(?:clients|compare-and-swap|sql)\/)/;

/**
 * The file that a module goes to: one per store, and one for what stores share. SQLite, the store without a URL, is with the
 * command itself: one file starts sooner than two.
 * @param {string} id @param {import('rollup').ManualChunkMeta} modules
 */
function fileOf(id, { getModuleInfo }) {
  if (isImportedBy(STREAMS, id, getModuleInfo)) return 'streams';
  if (isImportedBy(MAIN, id, getModuleInfo) || isImportedBy(SQLITE, id, getModuleInfo)) return 'main';
  return STORE.exec(id)?.[1] ?? 'shared';
}

/** @param {string} from @param {string} id @param {import('rollup').GetModuleInfo} getModuleInfo @param {Set<string>} seen @returns {boolean} */
function isImportedBy(from, id, getModuleInfo, seen = new Set()) {
  if (from === id) return true;
  if (seen.has(from)) return false;
  seen.add(from);
  return (
    getModuleInfo(from)?.importedIds.some((next) => isImportedBy(next, id, getModuleInfo, seen)) ?? false
  );
}

const forNode = {
  name: 'for-node',
  /** @param {string} code @param {string} id */
  transform: (code, id) =>
    id !== PERFORMANCE && /\bperformance\./.test(code)
      ? `import { performance } from ${JSON.stringify(PERFORMANCE)};${code}`
      : null,
  /** CommonJS has no `import.meta`. */
  resolveImportMeta: () => "require('node:url').pathToFileURL(__filename).href",
};

/**
 * Without clients of stores and without the service. Each store is in a file of its own, because Node parses all of a file
 * that it loads. CommonJS, because that starts sooner than ES modules.
 * @param {string} outfile
 */
export async function bundleCommand(outfile) {
  const { peerDependencies } = JSON.parse(readFileSync(join(HOME, 'holdfast/package.json'), 'utf8'));
  const clients = Object.keys(peerDependencies);
  const bundle = await rollup({
    input: { streams: STREAMS, main: MAIN },
    external: (id) =>
      id.startsWith('node:') ||
      id === 'holdfast-service' ||
      id.startsWith('holdfast-service/') ||
      clients.some((client) => id === client || id.startsWith(`${client}/`)),
    plugins: [nodeResolve(), forNode],
    preserveEntrySignatures: false,
  });
  const { output } = await bundle.generate({
    format: 'cjs',
    entryFileNames: 'holdfast-[name].cjs',
    chunkFileNames: 'holdfast-[name].cjs',
    manualChunks: fileOf,
    hoistTransitiveImports: false,
  });
  await bundle.close();
  for (const file of output) {
    if (file.type !== 'chunk') throw new Error(`${file.fileName} is not code.`);
    const { code } = await transform(file.code, { ...NODE, format: 'cjs' });
    writeFileSync(join(dirname(outfile), file.fileName), code);
  }
  // In this order: modules of Node that open the standard streams are loaded after these.
  writeFileSync(outfile, "require('./holdfast-streams.cjs');\nrequire('./holdfast-main.cjs');\n");
}
