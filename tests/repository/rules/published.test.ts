/** The parts of the published library. Its size is checked where it is packed. */
import { join, posix } from 'node:path';
import { build } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { importsOf } from '../code.js';
import type { Manifest } from '../public-api.js';
import { matching, read, root } from '../tree.js';

const HOME = 'packages/holdfast';

const sources = matching(/^packages\/holdfast\/src\/.*\.ts$/);
const { exports } = JSON.parse(read(`${HOME}/package.json`)) as Manifest;

/** All sources that a source imports, directly or not, types included. */
function reachedFrom(entries: readonly string[]): ReadonlySet<string> {
  const reached = new Set<string>();
  const left = [...entries];
  for (let source = left.pop(); source !== undefined; source = left.pop()) {
    if (reached.has(source)) continue;
    reached.add(source);
    for (const specifier of importsOf(read(source)).filter((name) => name.startsWith('.'))) {
      left.push(posix.join(posix.dirname(source), specifier).replace(/\.js$/, '.ts'));
    }
  }
  return reached;
}

describe('the published library', () => {
  it('has no file that no export reaches', () => {
    const entries = Object.values(exports).flatMap((target) =>
      typeof target === 'string'
        ? []
        : [target.default.replace('./dist/', `${HOME}/src/`).replace(/\.js$/, '.ts')],
    );
    const reached = reachedFrom(entries);
    expect(sources.filter((source) => !reached.has(source))).toEqual([]);
  });
});

describe('a program that bundles a store', () => {
  const { peerDependencies } = JSON.parse(read(`${HOME}/package.json`)) as { peerDependencies: object };
  const stores = ['postgres', 'dynamodb', 'nats', 'etcd', 'firestore'];

  it.each(stores)('has no layout of other software unless it imports one: %s', async (store) => {
    const { metafile } = await build({
      entryPoints: [join(root, HOME, `dist/stores/${store}/index.js`)],
      external: Object.keys(peerDependencies),
      ...{ bundle: true, platform: 'node', format: 'esm', write: false, metafile: true, outdir: 'unused' },
    });
    const loaded = Object.values(metafile.outputs).flatMap(({ inputs }) => Object.keys(inputs));
    expect(loaded.some((file) => file.includes(`stores/${store}/`))).toBe(true);
    expect(
      loaded.filter((file) => /\/(?:layouts|tables|lock-service-central|central-\w+)\b/.test(file)),
    ).toEqual([]);
  });
});
