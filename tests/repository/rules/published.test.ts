/** The size and the parts of the published library. */
import { existsSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import { importsOf } from '../code.js';
import type { Manifest } from '../public-api.js';
import { matching, read, root } from '../tree.js';

const HOME = 'packages/holdfast';
const BYTES_MAX = 1_500_000;

const sources = matching(/^packages\/holdfast\/src\/.*\.ts$/);
const { exports } = JSON.parse(read(`${HOME}/package.json`)) as Manifest;

/** The files that a source is built to. Counted from the sources: `dist` may have files of an earlier build. */
function builtFrom(source: string): readonly string[] {
  const built = source.replace('/src/', '/dist/').replace(/\.ts$/, '');
  return [`${built}.js`, `${built}.d.ts`].filter((file) => existsSync(join(root, file)));
}

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
  it(`has at most ${BYTES_MAX / 1_000} KB unpacked`, () => {
    const files = [...sources.flatMap(builtFrom), `${HOME}/package.json`, `${HOME}/README.md`];
    const bytes = files.reduce((sum, file) => sum + statSync(join(root, file)).size, 0);
    expect(bytes).toBeGreaterThan(BYTES_MAX / 10);
    expect(bytes).toBeLessThanOrEqual(BYTES_MAX);
  });

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
