import { existsSync } from 'node:fs';
import { join, posix } from 'node:path';
import { InvalidArgumentError, openStore } from 'holdfast';
import { describe, expect, it } from 'vitest';
import { anchorsOf, blocks, linksOf, pages } from '../markdown.js';
import { compileSnippets } from '../snippets.js';
import { matching, read, root } from '../tree.js';

/** `ts` and `js` are compiled and run, `sh` is run; the others are only shown. */
const LANGUAGES = ['ts', 'js', 'sh', 'text', 'json', 'sql', 'yaml', 'dts'];

const README_TEST_COMMAND = 'npm ci && npm test';
const README_FIRST_COMMAND = 'npm ci && npx holdfast run hello -- echo "only one of me"';

describe('the code blocks of the documents', () => {
  it('say their language', () => {
    const unsaid = blocks.filter(({ language }) => !LANGUAGES.includes(language));
    expect(unsaid.map(({ page, line, language }) => `${page}:${line} ${language}`)).toEqual([]);
  });

  it('compile with the settings of the packages', { timeout: 120_000 }, async () => {
    const snippets = await compileSnippets(blocks.filter(({ language }) => /^[jt]s$/.test(language)));
    snippets.remove();
  });
});

describe('the links of the documents', () => {
  it.each(pages)('%s leads only to what is there', (page) => {
    const broken = linksOf(page).filter((link) => {
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? page : posix.join(posix.dirname(page), path);
      if (!existsSync(join(root, target))) return true;
      return anchor !== undefined && target.endsWith('.md') && !anchorsOf(target).includes(anchor);
    });
    expect(broken).toEqual([]);
  });
});

describe('the README', () => {
  it('has the two commands as they are typed', () => {
    const shown = blocks.filter(({ page, language }) => page === 'README.md' && language === 'sh');
    const lines = shown.flatMap(({ code }) => code.split('\n'));
    expect(lines).toContain(README_FIRST_COMMAND);
    expect(lines).toContain(README_TEST_COMMAND);
  });

  it('has its test command run by CI, word for word', () => {
    expect(read('.ci/run').split('\n')).toContain(README_TEST_COMMAND);
    for (const workflow of matching(/^\.github\/workflows\/ci\.yml$/)) {
      expect(read(workflow)).toContain(`run: ${README_TEST_COMMAND}\n`);
      expect(read(workflow)).toContain(`run: ${README_FIRST_COMMAND}\n`);
    }
  });

  it('has the figures of the page of benchmarks', () => {
    const figures = [...read('README.md').matchAll(/\| (\d+(?:,\d{3})*)/g)].map(([, figure]) => figure);
    expect(figures.length).toBeGreaterThanOrEqual(6);
    const page = read('docs/benchmarks.md');
    expect(figures.filter((figure) => !page.includes(` ${figure}`))).toEqual([]);
  });
});

describe('the comparison', () => {
  it('has the ratios of the page of benchmarks', () => {
    const ratios = [...read('docs/comparison.md').matchAll(/\b(\d+(?:\.\d+)?×)/g)].map(([, ratio]) => ratio);
    expect(ratios.length).toBeGreaterThanOrEqual(7);
    const page = read('docs/benchmarks.md');
    expect(ratios.filter((ratio) => !page.includes(`(${ratio})`))).toEqual([]);
  });
});

describe('the recipes', () => {
  it('show the programs as they are', () => {
    const shown = blocks.filter(({ page }) => page === 'docs/recipes.md').map(({ code }) => code);
    const links = linksOf('docs/recipes.md').filter((link) => link.endsWith('.js'));
    const programs = links.filter((link) => link.includes('/patterns/'));
    expect(programs.length).toBeGreaterThanOrEqual(10);
    for (const program of programs) {
      const [, code = ''] = /\*\/\n([\s\S]*)/.exec(read(posix.join('docs', program))) ?? [];
      expect(shown).toContain(code.trim());
    }
  });
});

describe('the pages of the stores', () => {
  it('are all linked where people choose one, so that no store is left out', () => {
    const stores = matching(/^docs\/stores\/.*\.md$/).map((page) => page.replace('docs/', ''));
    for (const page of ['docs/guide.md', 'docs/which-store.md']) {
      const linked = linksOf(page).map((link) => link.split('#')[0]);
      expect(stores.filter((store) => !linked.includes(store))).toEqual([]);
    }
  });

  it('name every option that the URL of SQLite takes', async () => {
    const refusal = await openStore('sqlite:locks.db?no-such-option=1').catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(InvalidArgumentError);
    const [, ...options] = [...String(refusal).matchAll(/"([\w-]+)"/g)].map(([, name]) => name);
    expect(options.length).toBeGreaterThan(0);
    for (const option of options) expect(read('docs/stores/sqlite.md')).toContain(`?${option}=`);
  });
});

describe('the page about adding a store', () => {
  it('shows the example as it is, in at most 150 lines', () => {
    const example = read('examples/table-store.js').trimEnd();
    const shown = blocks.filter(({ page }) => page === 'docs/adding-a-store.md').map(({ code }) => code);
    expect(shown).toContain(example);
    expect(example.split('\n').length).toBeLessThanOrEqual(150);
  });
});

describe('decision records', () => {
  const records = matching(/^docs\/adr\/.*\.md$/);

  it.each(records)('%s is numbered and has at most 35 lines', (record) => {
    expect(record).toMatch(/\/\d{4}-[a-z0-9-]+\.md$/);
    expect(read(record).trimEnd().split('\n').length).toBeLessThanOrEqual(35);
  });

  it('are numbered without gaps', () => {
    expect(records.map((record) => Number(posix.basename(record).slice(0, 4)))).toEqual(
      records.map((_, index) => index + 1),
    );
  });
});
