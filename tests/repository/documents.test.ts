import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, it } from 'vitest';
import { type Block, blocks } from './markdown.js';
import { run } from './shell.js';
import { compileSnippets, type Snippets } from './snippets.js';
import { matching, root } from './tree.js';

const LIMIT_MS = 60_000;
const isCode = ({ language }: Block): boolean => language === 'ts' || language === 'js';

let folder: string;
let env: Record<string, string>;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-docs-'));
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  mkdirSync(join(folder, 'here'));
  symlinkSync(join(root, 'packages/cli/bin/holdfast.js'), join(bin, 'holdfast'));
  env = {
    PATH: `${bin}${delimiter}${process.env.PATH}`,
    HOLDFAST_STORE: `sqlite:${join(folder, 'locks.db')}`,
  };
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function runHere(command: string, args: readonly string[]): Promise<string> {
  return run(command, args, { cwd: join(folder, 'here'), env, timeoutMs: LIMIT_MS });
}

describe('the code of the documents does what it says', () => {
  const code = blocks.filter(isCode);
  let snippets: Snippets;

  beforeAll(async () => {
    snippets = await compileSnippets(code);
  });
  afterAll(() => snippets?.remove());

  for (const block of code.filter(({ noRun }) => noRun === null)) {
    it(`${block.page}:${block.line}`, { timeout: LIMIT_MS * 2 }, async () => {
      await runHere(process.execPath, [snippets.fileOf(block)]);
    });
  }
});

describe('the commands of the documents work', () => {
  for (const block of blocks.filter(({ language, noRun }) => language === 'sh' && noRun === null)) {
    it(`${block.page}:${block.line}`, { timeout: LIMIT_MS * 2 }, async () => {
      await runHere('bash', ['-euc', block.code]);
    });
  }
});

describe('the examples run to their end', () => {
  for (const example of matching(/^examples\/[^/]+\.js$/)) {
    it(example, { timeout: LIMIT_MS * 2 }, async () => {
      await runHere(process.execPath, [join(root, example)]);
    });
  }
});
