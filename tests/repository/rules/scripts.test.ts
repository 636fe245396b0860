import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { read, root } from '../tree.js';

const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };

describe('the scripts of the repository', () => {
  it.each(['prepare', 'build', 'start', 'check', 'test', 'bench', 'simulate', 'demo'])(
    '%s is there',
    (name) => {
      expect(scripts[name]).toBeTruthy();
    },
  );

  it('name files that exist', () => {
    const named = Object.values(scripts).flatMap((script) => [...script.matchAll(/\bnode (\S+)/g)]);
    expect(named.map(([, file = '']) => file).filter((file) => !existsSync(join(root, file)))).toEqual([]);
  });

  it('.ci/run can be run', () => {
    expect(statSync(join(root, '.ci/run')).mode & 0o111).not.toBe(0);
  });
});
