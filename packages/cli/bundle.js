/**
 * Makes the one file of the command for the published package, and removes it when that is packed: in the repository it
 * would be older than its sources. Clients of stores and the service are not part of it.
 */
import { readFileSync, renameSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const FILE = path('dist/holdfast.cjs');
const DRAFT = `${FILE}.${process.pid}`;
const { peerDependencies } = JSON.parse(readFileSync(path('../holdfast/package.json'), 'utf8'));

if (process.argv.includes('--remove')) rmSync(FILE, { force: true });
else {
  await build({
    stdin: {
      // In this order: modules of Node that open the standard streams are loaded after these.
      contents: "import './dist/printing/standard-streams.js'; import './dist/main.js';",
      resolveDir: path('.'),
    },
    outfile: DRAFT,
    bundle: true,
    minify: true,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    legalComments: 'none',
    external: ['holdfast-service', ...Object.keys(peerDependencies)],
    inject: [path('dist/performance.js')],
    define: { 'import.meta.url': 'fileUrl' },
    banner: { js: "const fileUrl = require('node:url').pathToFileURL(__filename).href;" },
    logLevel: 'warning',
  });
  renameSync(DRAFT, FILE);
}
