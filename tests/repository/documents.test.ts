import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { isLongRun } from '../long-run.js';
import { type Block, blocks } from './markdown.js';
import { canRun, PageServers } from './page-servers.js';
import { run } from './shell.js';
import { compileSnippets, type Snippets } from './snippets.js';
import { matching, read, root } from './tree.js';

const LIMIT_MS = 60_000;
/** Blocks on the same server wait for each other. */
const TEST_MS_MAX = 20 * LIMIT_MS;
/** What a block started in the background does not outlive it, whatever becomes of the block. */
const TIDY_UP = `trap 'kill $(jobs -p) 2>/dev/null || true' EXIT`;
/** `npm test` runs the pages that people read first, `npm run test:long` the other pages and the examples. */
const FIRST = /^(?:packages\/[^/]+\/)?README\.md$|^docs\/start\.md$/;
const pages = blocks.filter(({ page, noRun }) => noRun === null && FIRST.test(page) !== isLongRun);
const isCode = ({ language }: Block): boolean => language === 'ts' || language === 'js';

const servers = new PageServers();
afterAll(() => servers.stop());

/** In an empty folder, with `holdfast` on the path and a store of its own. `code` says which servers it needs. */
async function runAlone(code: string, command: string, args: readonly string[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-docs-'));
  const bin = join(folder, 'bin');
  const cwd = join(folder, 'here');
  mkdirSync(bin);
  mkdirSync(cwd);
  symlinkSync(join(root, 'packages/cli/bin/holdfast.js'), join(bin, 'holdfast'));
  const env = {
    PATH: `${bin}${delimiter}${process.env.PATH}`,
    HOLDFAST_STORE: `sqlite:${join(folder, 'locks.db')}`,
  };
  try {
    await servers.using(code, async (variables) => {
      await run(command, args, { cwd, env: { ...env, ...variables }, timeoutMs: LIMIT_MS });
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

describe('the code of the documents does what it says', () => {
  const code = pages.filter(isCode);
  let snippets: Snippets;

  beforeAll(async () => {
    snippets = await compileSnippets(code);
  });
  afterAll(() => snippets?.remove());

  for (const block of code) {
    it.runIf(canRun(block.code)).concurrent(
      `${block.page}:${block.line}`,
      { timeout: TEST_MS_MAX },
      async () => {
        await runAlone(block.code, process.execPath, [snippets.fileOf(block)]);
      },
    );
  }
});

describe('the commands of the documents work', () => {
  for (const block of pages.filter(({ language }) => language === 'sh')) {
    it.runIf(canRun(block.code)).concurrent(
      `${block.page}:${block.line}`,
      { timeout: TEST_MS_MAX },
      async () => {
        await runAlone(block.code, 'bash', ['-euc', `${TIDY_UP}\n${block.code}`]);
      },
    );
  }
});

describe.runIf(isLongRun)('the examples run to their end', () => {
  for (const example of matching(/^examples\/[^/]+\.js$/)) {
    const code = read(example);
    it.runIf(canRun(code)).concurrent(example, { timeout: TEST_MS_MAX }, async () => {
      await runAlone(code, process.execPath, [join(root, example)]);
    });
  }
});
