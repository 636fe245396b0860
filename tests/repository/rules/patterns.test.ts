/** The first-day programs: short, and each says what it shows and what a fleet changes. */
import { describe, expect, it } from 'vitest';
import { codeOf } from '../code.js';
import { matching, read } from '../tree.js';

const LINES_MAX = 12;
/** Not programs but what a program imports, to be copied. */
const COPIED: Readonly<Record<string, number>> = { 'examples/patterns/nest-module.ts': 45 };

const patterns = matching(/^examples\/patterns\/[^/]+\.[jt]s$/);

/** Lines of code without imports, comments and blank lines. */
function linesOf(source: string): readonly string[] {
  const code = codeOf(source).replace(/^import\b[^;]*;/gm, '');
  return code.split('\n').filter((line) => line.trim() !== '');
}

describe('the patterns', () => {
  it('are counted without imports, comments and blank lines', () => {
    const source = `// @ts-check\n/**\n * import\n */\nimport {\n  a,\n} from 'a';\nimport 'b';\n\na(); // one\nawait import('c');\n`;
    expect(linesOf(source).map((line) => line.trim())).toEqual(['a();', "await import(' ');"]);
  });

  it('are there', () => {
    expect(patterns.length).toBeGreaterThanOrEqual(5);
  });

  it.each(patterns)('%s is short', (file) => {
    expect(linesOf(read(file)).length).toBeLessThanOrEqual(COPIED[file] ?? LINES_MAX);
  });

  it.each(patterns.filter((file) => !COPIED[file]))('%s says what a fleet changes', (file) => {
    const [, header = ''] = /^(?:\/\/ @ts-check\n)?\/\*\*(.*?)\*\//s.exec(read(file)) ?? [];
    expect(header).toMatch(/\bfleet\b/);
    expect(header).toContain('HOLDFAST_STORE');
  });
});
