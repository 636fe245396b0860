/**
 * Links of the Markdown files, which lead from file to file, as links of the site:
 * 1. A page under docs, CHANGELOG.md and CONTRIBUTING.md lead to their pages.
 * 2. Everything else in the repository (examples, tests, sources) leads to a copy of the file, as text, under `files`.
 * 3. A folder leads to a list of its files.
 */
import { copyFileSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, posix, relative, sep } from 'node:path';

/** As GitHub names headings in links, so that one link works there and on the site. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replace(/ /g, '-');
}

/** Where a Markdown file is on the site; null if it is no page. */
export function pageOf(file: string): string | null {
  if (file === 'README.md' || file === 'docs') return '/';
  if (file === 'docs/adr') return '/adr/0001-one-state-machine.md';
  if (file === 'CHANGELOG.md' || file === 'CONTRIBUTING.md') return `/${file.toLowerCase()}`;
  if (!/^docs\/.*\.md$/.test(file)) return null;
  return `/${file.slice('docs/'.length).replace(/(^|\/)README\.md$/, '$1')}`;
}

export class SiteLinks {
  readonly #repository: string;
  readonly #files = new Set<string>();

  constructor(repository: string) {
    this.#repository = repository;
  }

  /** `page`: the absolute path of the Markdown file that has the link. */
  hrefOf(page: string, link: string): string {
    if (/^(?:[a-z]+:|#|\/)/.test(link)) return link;
    const [path = '', anchor] = link.split('#');
    const from = relative(this.#repository, dirname(page)).split(sep).join('/');
    const file = posix.join(from, path).replace(/\/$/, '');
    const target = pageOf(file) ?? this.#fileOf(file);
    return anchor === undefined ? target : `${target}#${anchor}`;
  }

  /** Copies the files that pages link to. Called when all pages are made. */
  copyTo(site: string): void {
    for (const file of this.#files) copy(this.#repository, file, join(site, 'files'));
  }

  #fileOf(file: string): string {
    const path = join(this.#repository, file);
    if (!existsSync(path)) throw new Error(`A page links to ${file}, which does not exist.`);
    this.#files.add(file);
    return `/files/${file}${statSync(path).isDirectory() ? '/index.html' : '.txt'}`;
  }
}

function copy(repository: string, file: string, to: string): void {
  const path = join(repository, file);
  if (statSync(path).isDirectory()) {
    copyFolder(repository, file, to);
  } else {
    mkdirSync(dirname(join(to, file)), { recursive: true });
    copyFileSync(path, join(to, `${file}.txt`));
  }
}

function copyFolder(repository: string, folder: string, to: string): void {
  const names = readdirSync(join(repository, folder)).filter((name) => name !== 'node_modules');
  const entries = names.map((name) => {
    const file = posix.join(folder, name);
    copy(repository, file, to);
    const isFolder = statSync(join(repository, file)).isDirectory();
    return `<li><a href="${name}${isFolder ? '/index.html' : '.txt'}">${name}</a></li>`;
  });
  mkdirSync(join(to, folder), { recursive: true });
  writeFileSync(
    join(to, folder, 'index.html'),
    `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>${folder}</title><h1>${folder}</h1><ul>${entries.join('')}</ul></html>\n`,
  );
}
