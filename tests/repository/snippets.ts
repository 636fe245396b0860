/**
 * Compiles the code blocks of the documents, all in one project, with the settings of the packages. The project
 * lies inside the repository, so that `holdfast` is found as it is in a user's project: by its `exports`.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Block } from './markdown.js';
import { run } from './shell.js';
import { root } from './tree.js';

export interface Snippets {
  /** The compiled file of a block. */
  fileOf(block: Block): string;
  remove(): void;
}

const SETTINGS = {
  extends: '../../tsconfig.base.json',
  compilerOptions: {
    rootDir: 'src',
    outDir: 'out',
    allowJs: true,
    checkJs: true,
    composite: false,
    declaration: false,
    sourceMap: false,
    // A block shows a thing; what a reader does with it comes after the block.
    noUnusedLocals: false,
    noUnusedParameters: false,
  },
  // Libraries without types, which the benchmark has some for.
  include: ['src', '../../bench/redlock.d.ts', '../../bench/proper-lockfile.d.ts'],
};

/** Rejects with the compiler's words; its lines are those of the page. */
export async function compileSnippets(blocks: readonly Block[]): Promise<Snippets> {
  mkdirSync(join(root, '.tmp'), { recursive: true });
  const folder = mkdtempSync(join(root, '.tmp', 'docs-'));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, 'src'));
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(SETTINGS));
  for (const block of blocks) {
    // The empty lines make the compiler speak of the page's own lines; the export makes every block a module.
    const text = `${'\n'.repeat(block.line - 1)}${block.code}\nexport {};\n`;
    writeFileSync(join(folder, 'src', `${nameOf(block)}.${block.language}`), text);
  }
  try {
    await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder], {
      cwd: folder,
    });
  } catch (error) {
    remove();
    throw error;
  }
  return { fileOf: (block) => join(folder, 'out', `${nameOf(block)}.js`), remove };
}

function nameOf({ page, line }: Block): string {
  return `${page.replace(/\.md$/, '').replaceAll('/', '-')}-${line}`;
}
