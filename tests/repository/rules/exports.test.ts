import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { describe, expect, it } from 'vitest';
import type { Manifest } from '../public-api.js';
import { matching, read, root } from '../tree.js';

const packages = ['packages/holdfast', 'packages/cli'];
const manifestOf = (folder: string): Manifest & { readonly version: string } =>
  JSON.parse(read(`${folder}/package.json`));

/** What a user imports by a name of its own: every store, and the parts that have an index. */
function partsWithAName(): readonly string[] {
  const stores = matching(/^packages\/holdfast\/src\/stores\/[^/]+(?:\.ts|\/index\.ts)$/);
  const parts = matching(/^packages\/holdfast\/src\/(?:fences|protocol|testkit)\/index\.ts$/);
  return [...stores, ...parts].map((file) => file.replace('packages/holdfast/src/', ''));
}

describe('the exports of the library', () => {
  const { exports } = manifestOf('packages/holdfast');
  const targets = Object.entries(exports).flatMap(([subpath, target]) =>
    typeof target === 'string' ? [] : [{ subpath, ...target }],
  );

  it('each name a source file, its declarations first', () => {
    for (const { subpath, types, default: code } of targets) {
      expect(types, subpath).toBe(code.replace(/\.js$/, '.d.ts'));
      const source = code.replace(/^\.\/dist\//, 'packages/holdfast/src/').replace(/\.js$/, '.ts');
      expect(existsSync(join(root, source)), `${subpath} names ${source}`).toBe(true);
    }
  });

  it('leave out no store and no part, and call each by the name of its file', () => {
    for (const part of partsWithAName()) {
      const name = part.replace(/^stores\//, '').replace(/(?:\/index)?\.ts$/, '');
      const target = targets.find(({ subpath }) => subpath === `./${name}`);
      expect(target?.default, part).toBe(`./dist/${part.replace(/\.ts$/, '.js')}`);
    }
  });
});

describe('the packages', () => {
  it.each(packages)('%s has nothing that publint objects to', async (folder) => {
    const pkgDir = join(root, folder);
    const { messages, pkg } = await publint({ pkgDir, strict: true, level: 'warning', pack: false });
    expect(messages.map((message) => formatMessage(message, pkg, { color: false }))).toEqual([]);
  });

  it('depend on exactly this version of each other', () => {
    const { version } = manifestOf('packages/holdfast');
    for (const folder of packages) {
      const { dependencies = {} } = manifestOf(folder) as { dependencies?: Record<string, string> };
      if ('holdfast' in dependencies) expect(dependencies.holdfast, folder).toBe(version);
    }
  });
});
