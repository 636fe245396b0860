/** The files of this repository as a clone has them: nothing installed, built or temporary. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

const NOT_OURS = new Set(['.git', '.tmp', 'node_modules', 'dist', 'coverage']);

/** Paths from the root, with `/`, sorted. */
export const files: readonly string[] = walk(root).sort();

function walk(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (NOT_OURS.has(entry.name) || entry.name.endsWith('.tgz')) return [];
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return walk(path);
    return [relative(root, path).split(sep).join('/')];
  });
}

export function matching(pattern: RegExp): readonly string[] {
  return files.filter((file) => pattern.test(file));
}

const texts = new Map<string, string>();

/** As it was when it was first read. */
export function read(file: string): string {
  const text = texts.get(file) ?? readFileSync(join(root, file), 'utf8');
  texts.set(file, text);
  return text;
}
