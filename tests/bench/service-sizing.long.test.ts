import { join } from 'node:path';
import { available } from 'holdfast-test-servers';
import { describe, expect, it } from 'vitest';
import { run } from '../repository/shell.js';
import { read, root } from '../repository/tree.js';

/** Headings and labels, without the sizes of the run. */
function shapeOf(text: string): readonly string[] {
  const [heading = '', , ...rows] = text.split('\n').filter((line) => line.startsWith('|'));
  return [heading, ...rows.map((row) => row.split('|')[1] ?? '')].map((label) =>
    label.replace(/[\d,]+/g, 'N').trim(),
  );
}

const canMeasure = process.platform === 'linux' && available('redis') && available('postgres-15');

describe.runIf(canMeasure)('npm run bench:service', () => {
  it('makes the table of the page about operating', async () => {
    const table = await run(process.execPath, [join(root, 'bench/service-sizing.js'), '--quick'], {
      cwd: root,
      timeoutMs: 240_000,
    });
    const [, measured = ''] = read('docs/service/operating.md').split('<!-- measured: begin -->');
    const [page = ''] = measured.split('<!-- measured: end -->');
    expect(shapeOf(page)).toEqual(shapeOf(table));
    expect(table).not.toMatch(/NaN|undefined/);
  });
});
