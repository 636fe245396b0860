import { configFrom, SETTINGS } from 'holdfast-service';
import { describe, expect, it } from 'vitest';
import { read } from '../repository/tree.js';

/** The cells of every row of every table. */
function rowsOf(page: string): readonly (readonly string[])[] {
  const lines = page.split('\n').filter((line) => line.startsWith('|'));
  return lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/** `a`, `b` | 1, 2 → a: 1, b: 2. */
function numbersIn(page: string): Record<string, number> {
  const found: Record<string, number> = {};
  for (const [names = '', values = ''] of rowsOf(page)) {
    const all = values.split(', ').map(Number);
    names.match(/`(\w+)`/g)?.forEach((name, index) => {
      found[name.slice(1, -1)] = all[index] ?? Number.NaN;
    });
  }
  return found;
}

describe('the documents of the service', () => {
  it('have every setting, with its variable and what it is', () => {
    const rows = rowsOf(read('docs/service/README.md')).filter(([, variable]) =>
      variable?.startsWith('`HOLDFAST'),
    );
    expect(rows.map((row) => row.slice(0, 2))).toEqual(
      SETTINGS.map(({ name, variable }) => [`\`${name}\``, `\`${variable}\``]),
    );
    for (const { name, text } of SETTINGS) {
      const said = rows.find(([each]) => each === `\`${name}\``)?.[2];
      expect(said?.replaceAll('`', '')).toBe(text);
    }
  });

  it('have every limit, with what it is unless told', () => {
    const { limits, principalLimits } = configFrom({ defaultStore: () => 'memory:' });
    const page = read('docs/service/security.md').split('## Limits')[1] ?? '';
    const [whole = '', each = ''] = page.split('Under `principalLimits`');
    expect(numbersIn(whole)).toEqual(limits);
    expect(numbersIn(each.split('```')[0] ?? '')).toEqual(principalLimits);
  });
});
