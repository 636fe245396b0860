/** Reads what can go wrong in a page: its code blocks, its links, its headings. */
import { anchorOf } from '../../docs/.vitepress/links.js';
import { matching, read } from './tree.js';

export interface Block {
  readonly page: string;
  /** The line of its first line of code, from 1. */
  readonly line: number;
  readonly language: string;
  readonly code: string;
  /** Why it is compiled but not run, from `<!-- no-run: reason -->` on the line before it. */
  readonly noRun: string | null;
}

export const pages: readonly string[] = matching(
  /^(?:README|CONTRIBUTING|CHANGELOG)\.md$|^docs\/.*\.md$|^packages\/[^/]+\/README\.md$/,
);

function blocksOf(page: string): readonly Block[] {
  const lines = read(page).split('\n');
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; at++) {
    const [, fence, language = ''] = /^ *(`{3,})(\S*)/.exec(lines[at] ?? '') ?? [];
    if (!fence) continue;
    const end = lines.findIndex((line, index) => index > at && line.trim() === fence);
    if (end === -1) throw new Error(`${page}:${at + 1}: this block has no end.`);
    const before = lines.slice(0, at).findLast((line) => line.trim() !== '');
    const noRun = /^<!-- no-run: (.+) -->$/.exec(before ?? '')?.[1] ?? null;
    blocks.push({ page, line: at + 2, language, code: lines.slice(at + 1, end).join('\n'), noRun });
    at = end;
  }
  return blocks;
}

export const blocks: readonly Block[] = pages.flatMap(blocksOf);

/** Text outside code blocks and code spans. */
function proseOf(page: string): string {
  return read(page)
    .replace(/^ *(`{3,})[\s\S]*?^ *\1$/gm, '')
    .replace(/`[^`\n]*`/g, '');
}

/** Targets of links and images that lead to another file or heading here. */
export function linksOf(page: string): readonly string[] {
  const links = proseOf(page).matchAll(/\]\(([^)\s]+)\)|(?:src|href|srcset)="([^"]+)"/g);
  return [...links].map(([, link, source]) => link ?? source ?? '').filter((link) => !/^[a-z]+:/.test(link));
}

/** As GitHub names them in links. */
export function anchorsOf(page: string): readonly string[] {
  const text = read(page).replace(/^ *(`{3,})[\s\S]*?^ *\1$/gm, '');
  return [...text.matchAll(/^#+ +(.+)$/gm)].map(([, heading = '']) =>
    anchorOf(heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')),
  );
}
