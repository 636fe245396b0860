/** The command as one file: for the published package, and for the tests of the command. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const HOME = fileURLToPath(new URL('.', import.meta.url));

export const NODE = /** @type {const} */ ({
  platform: 'node',
  target: 'node20',
  minify: true,
  // Node prints the whole line of an uncaught error before its message.
  lineLimit: 200,
  legalComments: 'none',
  logLevel: 'warning',
});
/** CommonJS has no `import.meta`. */
export const FILE_URL = {
  define: { 'import.meta.url': 'fileUrl' },
  banner: { js: "const fileUrl = require('node:url').pathToFileURL(__filename).href;" },
};

/** Without clients of stores and without the service. @param {string} outfile */
export async function bundleCommand(outfile) {
  const from = join(HOME, 'cli');
  const { peerDependencies } = JSON.parse(readFileSync(join(HOME, 'holdfast/package.json'), 'utf8'));
  await build({
    ...NODE,
    ...FILE_URL,
    stdin: {
      // In this order: modules of Node that open the standard streams are loaded after these.
      contents: "import './dist/printing/standard-streams.js'; import './dist/main.js';",
      resolveDir: from,
    },
    outfile,
    bundle: true,
    format: 'cjs',
    external: ['holdfast-service', ...Object.keys(peerDependencies)],
    inject: [join(from, 'dist/performance.js')],
  });
}
