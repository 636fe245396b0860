/** The parts of the published library. Its size is checked where it is packed. */
import { posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import { importsOf } from '../code.js';
import type { Manifest } from '../public-api.js';
import { matching, read } from '../tree.js';

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
