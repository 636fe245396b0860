import { describe, expect, it } from 'vitest';
import { findings } from '../code.js';
import { matching, read } from '../tree.js';

const texts = matching(/\.(?:[cm]?[jt]s|md|sql|lua|html|css|svg|json|yaml)$/).filter(
  (file) => file !== 'package-lock.json',
);

function search(
  where: readonly string[],
  pattern: RegExp,
  counts: (found: string) => boolean,
): readonly string[] {
  return where.flatMap((file) => {
    const source = read(file);
    return findings(file, source, source, pattern, counts);
  });
}

describe('the codes of failures', () => {
  const defined = [...read('docs/failures.md').matchAll(/^\| ([FP]\d+) \|/gm)].map(([, code = '']) => code);

  it('are each defined once, in docs/failures.md', () => {
    expect(defined.length).toBeGreaterThan(50);
    expect(defined).toEqual([...new Set(defined)]);
  });

  it('are defined there wherever they are named', () => {
    const code = /(?<![\w./%-])[FP][1-9]\d?(?![\w/-]|\.\w)/g;
    const known = new RegExp(`^(?:${defined.join('|')})$`);
    expect(search(texts, code, (found) => !known.test(found))).toEqual([]);
  });
});
