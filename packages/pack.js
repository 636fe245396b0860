/**
 * Packs the packages as they are published: `npm run pack -- FOLDER`. Makes the folder where it is missing, and prints the
 * tarballs; with `--json` their sizes and files, too.
 *
 * 1. Each package is copied to a temporary folder: in the repository nothing changes, and tests may run beside it.
 * 2. The library's modules are minified one by one, so that a stack trace still names the module. Declarations that no export
 *    reaches are left out.
 * 3. For `require` where that cannot load ES modules (Jest, bundlers of old, TypeScript's node16) the library has a second form
 *    in `dist/cjs`: one file with all parts, each initialised when it is first required, and the same declarations.
 * 4. The command is made into few files, without clients of stores and without the service.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, posix, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { bundleCommand, NODE } from './command-bundle.js';

const HOME = fileURLToPath(new URL('.', import.meta.url));
/** CommonJS has no `import.meta`. */
const FILE_URL = {
  define: { 'import.meta.url': 'fileUrl' },
  banner: { js: "const fileUrl = require('node:url').pathToFileURL(__filename).href;" },
};

/** Declarations as they were emitted: those of the public API. The others lose their indentation, and in the second form their comments. */
const DOCUMENTED = /(?:^|\/)(?:index|api|options|errors|memory|locks)\.d\.ts$/;
const COMMENTS = /^ *\/\*\*[\s\S]*?\*\/\n/gm;
const INDENTATION = /^ +/gm;

/** Users bundle the Lua texts: without comments and indentation, as they are sent to Redis. */
const LUA = {
  name: 'lua',
  /** @param {import('esbuild').PluginBuild} bundler */
  setup(bundler) {
    bundler.onLoad({ filter: /stores[\\/]redis[\\/](?:lua[\\/].*|script)\.js$/ }, ({ path }) => ({
      contents: read(path)
        .replaceAll(/^\s*--.*\n/gm, '')
        .replaceAll(/^\s+/gm, ''),
    }));
  },
};

/** @param {string} file */
const read = (file) => readFileSync(file, 'utf8');

/** @param {string} file @param {string} text */
function write(file, text) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** The declarations that these ones reach, themselves too. @param {string} dist @param {readonly string[]} entries */
function declarations(dist, entries) {
  const found = new Map();
  const left = [...entries];
  for (let file = left.pop(); file !== undefined; file = left.pop()) {
    if (found.has(file)) continue;
    const text = read(join(dist, file));
    found.set(file, text);
    for (const [, name = ''] of text.matchAll(/(?:from|import\()\s*['"](\.[^'"]+)\.js['"]/g)) {
      left.push(posix.join(posix.dirname(file), `${name}.d.ts`));
    }
  }
  return found;
}

/** @param {string} from @param {string} to */
async function stageLibrary(from, to) {
  const manifest = JSON.parse(read(join(from, 'package.json')));
  const dist = join(from, 'dist');
  /** @type {[string, { types: string, default: string }][]} */
  const parts = Object.entries(manifest.exports).filter(([, target]) => typeof target !== 'string');
  const types = declarations(
    dist,
    parts.map(([, target]) => target.types.replace('./dist/', '')),
  );
  for (const [file, text] of types) {
    const isDocumented = DOCUMENTED.test(file);
    write(join(to, 'dist', file), isDocumented ? text : text.replace(INDENTATION, ''));
    write(
      join(to, 'dist/cjs', file),
      isDocumented ? text : text.replace(COMMENTS, '').replace(INDENTATION, ''),
    );
  }
  await build({
    ...NODE,
    entryPoints: readdirSync(dist, { recursive: true })
      .filter((file) => file.endsWith('.js'))
      .map((file) => join(dist, file)),
    outdir: join(to, 'dist'),
    outbase: dist,
    format: 'esm',
    plugins: [LUA],
  });
  await build({
    ...NODE,
    ...FILE_URL,
    stdin: {
      contents: parts
        .map(([name, target]) => `exports['${name}'] = () => require('${target.default}');`)
        .join('\n'),
      resolveDir: from,
    },
    outfile: join(to, 'dist/cjs/parts.js'),
    bundle: true,
    format: 'cjs',
    external: Object.keys(manifest.peerDependencies),
    plugins: [LUA],
    // Jest cannot import in a CommonJS module.
    supported: { 'dynamic-import': false },
  });
  write(join(to, 'dist/cjs/package.json'), '{ "type": "commonjs" }\n');
  manifest.exports = { ...manifest.exports };
  for (const [name, target] of parts) {
    const file = target.default.replace('./dist/', '');
    const all = posix.relative(posix.dirname(file), 'parts.js');
    write(
      join(to, 'dist/cjs', file),
      `module.exports = require('${all.startsWith('.') ? all : `./${all}`}')['${name}']();\n`,
    );
    const second = {
      types: `./dist/cjs/${target.types.replace('./dist/', '')}`,
      default: `./dist/cjs/${file}`,
    };
    manifest.exports[name] = {
      'module-sync': target,
      bun: target,
      module: target,
      require: second,
      default: target,
    };
  }
  return manifest;
}

/** @param {string} from @param {string} to */
async function stageCommand(from, to) {
  await bundleCommand(join(to, 'dist/holdfast.cjs'));
  return JSON.parse(read(join(from, 'package.json')));
}

/** @param {string} name @param {string} folder where the tarball goes */
async function pack(name, folder) {
  const from = join(HOME, name);
  const stage = mkdtempSync(join(tmpdir(), 'holdfast-pack-'));
  try {
    const { files } = JSON.parse(read(join(from, 'package.json')));
    for (const part of [
      'README.md',
      'LICENSE',
      ...files.filter((/** @type {string} */ part) => !part.startsWith('!')),
    ]) {
      if (name === 'holdfast' && part === 'dist') continue;
      cpSync(join(from, part), join(stage, part), { recursive: true });
    }
    const stages = { holdfast: stageLibrary, cli: stageCommand };
    const manifest = (await stages[name]?.(from, stage)) ?? JSON.parse(read(join(from, 'package.json')));
    delete manifest.scripts;
    write(join(stage, 'package.json'), `${JSON.stringify(manifest)}\n`);
    const args = ['pack', stage, '--json', '--pack-destination', folder];
    return JSON.parse(execFileSync('npm', args, { encoding: 'utf8' }))[0];
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

const { values, positionals } = parseArgs({ options: { json: { type: 'boolean' } }, allowPositionals: true });
const folder = resolve(positionals[0] ?? '.');
mkdirSync(folder, { recursive: true }); // npm pack makes none
const packed = [];
for (const name of ['holdfast', 'service', 'cli']) packed.push(await pack(name, folder));
console.log(
  values.json
    ? JSON.stringify(
        packed.map(({ name, filename, size, unpackedSize, files }) => ({
          name,
          filename,
          size,
          unpackedSize,
          files: files.map(({ path }) => path),
        })),
      )
    : packed.map(({ filename }) => join(folder, filename)).join('\n'),
);
