import { posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import { importsOf } from '../code.js';
import { matching, read } from '../tree.js';

type Graph = ReadonlyMap<string, readonly string[]>;

/** Which file imports which, types included. */
function graphOf(files: readonly string[], textOf: (path: string) => string): Graph {
  return new Map(
    files.map((file) => [
      file,
      importsOf(textOf(file))
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => posix.join(posix.dirname(file), specifier).replace(/\.js$/, '.ts')),
    ]),
  );
}

/** The first cycle found, as a way back to its beginning; null when there is none. */
function cycleIn(graph: Graph): readonly string[] | null {
  const done = new Set<string>();
  const follow = (file: string, way: readonly string[]): readonly string[] | null => {
    if (way.includes(file)) return [...way.slice(way.indexOf(file)), file];
    if (done.has(file)) return null;
    for (const next of graph.get(file) ?? []) {
      const cycle = follow(next, [...way, file]);
      if (cycle) return cycle;
    }
    done.add(file);
    return null;
  };
  for (const file of graph.keys()) {
    const cycle = follow(file, []);
    if (cycle) return cycle;
  }
  return null;
}

describe('imports never lead back to where they began, types included', () => {
  for (const home of ['packages/holdfast', 'packages/service', 'packages/cli', 'packages/test-servers']) {
    it(`in ${home}`, () => {
      const files = matching(new RegExp(`^${home}/src/.*\\.ts$`));
      expect(files.length).toBeGreaterThan(3);
      expect(cycleIn(graphOf(files, read))).toBeNull();
    });
  }

  it('a cycle of type imports would be found', () => {
    const texts: Readonly<Record<string, string>> = {
      'a.ts': "import type { B } from './b.js';",
      'b.ts': "import { c } from './c.js';",
      'c.ts': "export type { A } from './a.js';",
    };
    const graph = graphOf(Object.keys(texts), (path) => texts[path] ?? '');
    expect(cycleIn(graph)).toEqual(['a.ts', 'b.ts', 'c.ts', 'a.ts']);
  });
});
