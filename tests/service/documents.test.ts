/** What the pages of the service say in tables is what the code has. */
import { memoryStore } from 'holdfast/memory';
import { configFrom, createService, SETTINGS } from 'holdfast-service';
import { describe, expect, it } from 'vitest';
import { read } from '../repository/tree.js';

const running = read('docs/service/README.md');
const security = read('docs/service/security.md');

/** Of rows such as `| name, other | 1, 2 | … |`, each name with its number. */
function numbersIn(text: string): Readonly<Record<string, number>> {
  const rows = [...text.matchAll(/^\| ((?:`\w+`(?:, )?)+) \| ([\d, ]+) \|/gm)];
  const pairs = rows.flatMap(([, names = '', numbers = '']) => {
    const values = numbers.split(', ').map(Number);
    return [...names.matchAll(/\w+/g)].map(([name], at) => [name, values[at]] as const);
  });
  return Object.fromEntries(pairs) as Record<string, number>;
}

describe('the documents of the service', () => {
  it('name every limit with its default', () => {
    const { limits, principalLimits } = configFrom({ defaultStore: () => 'memory:' });
    const [forAll = '', forEach = ''] = security.split('Under `principalLimits`');
    expect(numbersIn(forAll)).toEqual(limits);
    expect(numbersIn(forEach)).toEqual(principalLimits);
  });

  it('name every setting with its variable', () => {
    const rows = [...running.matchAll(/^\| `([a-z-]+)` \| `(HOLDFAST_\w+)` \|/gm)];
    const named = rows.map(([, name, variable]) => [name, variable]);
    expect(named).toEqual(SETTINGS.map(({ name, variable }) => [name, variable]));
  });

  it('name every metric', async () => {
    const store = memoryStore();
    const service = createService({ store });
    const text = await (await fetch(`${await service.listen()}/metrics`)).text();
    await service.close();
    await store.close();
    const counted = [...text.matchAll(/^# TYPE (holdfast_\w+)/gm)].map(([, name = '']) => name);
    const named = [...running.matchAll(/`(holdfast_\w+)`/g)].map(([, name = '']) => name);
    expect(named.sort()).toEqual(counted.sort());
  });
});
