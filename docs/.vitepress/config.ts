/**
 * The site: the Markdown of docs, CHANGELOG.md and CONTRIBUTING.md as static files, with search.
 * `npm run site` writes it to dist/site; `npm run site:dev` shows it while you write.
 */
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';
import { anchorOf, SiteLinks } from './links.js';
import { sidebarOf } from './navigation.js';

const repository = join(dirname(fileURLToPath(import.meta.url)), '../..');
const links = new SiteLinks(repository);

/** The part of a token of the Markdown parser that is used here. */
interface Token {
  readonly type: string;
  readonly children: readonly Token[] | null;
  attrGet(name: string): string | null;
  attrSet(name: string, value: string): void;
}

function rewriteLinks(tokens: readonly Token[], page: string): void {
  for (const token of tokens) {
    const href = token.type === 'link_open' ? token.attrGet('href') : null;
    if (href !== null) token.attrSet('href', links.hrefOf(page, href));
    rewriteLinks(token.children ?? [], page);
  }
}

const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect x="5" y="14" width="22" height="15" rx="3" fill="#3451b2"/><path d="M10 14v-4a6 6 0 0 1 12 0v4" fill="none" stroke="#3451b2" stroke-width="3"/></svg>`;
const STYLE = '.VPHome .vp-doc h1 { margin: 48px 0 24px } .vp-doc img { border-radius: 8px }';

const HERO = {
  name: 'Holdfast',
  text: 'A lock for TypeScript programs',
  tagline:
    'One piece of work, done by one process at a time. In the Redis, PostgreSQL, DynamoDB or NATS that you already run, or in a file.',
  actions: [
    { theme: 'brand', text: 'Start here', link: '/start' },
    { theme: 'alt', text: 'Which store?', link: '/which-store' },
    { theme: 'alt', text: 'Recipes', link: '/recipes' },
  ],
};

const FEATURES = [
  {
    title: 'You are told',
    details: 'A signal aborts the moment you no longer hold the lock, even if the store hangs.',
  },
  {
    title: 'Late writers are refused',
    details: 'Every grant has a fencing token that only rises. Guards make your database compare it.',
  },
  {
    title: 'Waiting is fair and cheap',
    details:
      'First come, first served. A release wakes the next waiter; a thousand waiters cost what one costs.',
  },
  {
    title: 'Every promise has a test',
    details:
      'The page of guarantees links the test behind each promise. Every block of code on these pages is run.',
  },
];

export default defineConfig({
  title: 'Holdfast',
  description: 'A distributed lock for TypeScript: a library, a lock service and a command.',
  lang: 'en',
  head: [
    ['link', { rel: 'icon', href: `data:image/svg+xml,${encodeURIComponent(ICON)}` }],
    ['style', {}, STYLE],
  ],
  srcDir: '..',
  srcExclude: ['README.md', '{packages,tests,bench,examples,deploy,dist}/**'],
  outDir: '../dist/site',
  cacheDir: '../node_modules/.cache/vitepress',
  rewrites: {
    'docs/README.md': 'index.md',
    'docs/:folder/README.md': ':folder/index.md',
    'docs/:path*': ':path*',
    'CHANGELOG.md': 'changelog.md',
    'CONTRIBUTING.md': 'contributing.md',
  },
  // Copies of files, which `SiteLinks` has checked.
  ignoreDeadLinks: [/^\/files\//],
  markdown: {
    languageAlias: { dts: 'ts' },
    anchor: { slugify: anchorOf },
    config(parser) {
      parser.core.ruler.push('links-of-the-site', (state) => {
        const { realPath, path } = state.env as { readonly realPath?: string; readonly path: string };
        rewriteLinks(state.tokens as unknown as Token[], realPath ?? path);
      });
    },
  },
  transformPageData(page) {
    if (page.relativePath !== 'index.md') return;
    Object.assign(page.frontmatter, { layout: 'home', hero: HERO, features: FEATURES });
  },
  themeConfig: {
    nav: [
      { text: 'Start', link: '/start' },
      { text: 'Guide', link: '/guide' },
      { text: 'Guarantees', link: '/guarantees' },
      { text: 'Service', link: '/service/' },
      { text: 'Reference', link: '/reference/library' },
    ],
    sidebar: sidebarOf(repository),
    outline: { level: [2, 3] },
    search: { provider: 'local' },
  },
  buildEnd: ({ outDir }) => links.copyTo(outDir),
});
