/** The tables of docs/observability.md. */
import { readFileSync } from 'node:fs';

const page = readFileSync(new URL('../../../../docs/observability.md', import.meta.url), 'utf8');

/** The rows of the table whose first heading is this, without the marks of code. */
export function tableOf(heading: string): readonly (readonly string[])[] {
  const lines = page.split('\n');
  const start = lines.findIndex((line) => line.startsWith(`| ${heading} |`));
  if (start === -1) throw new Error(`docs/observability.md has no table "${heading}".`);
  const rows = lines.slice(start + 2);
  const length = rows.findIndex((line) => !line.startsWith('|'));
  return rows.slice(0, length === -1 ? undefined : length).map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.replaceAll('`', '').trim()),
  );
}
