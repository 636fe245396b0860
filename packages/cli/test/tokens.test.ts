import { parseArgs } from 'node:util';
import { expect, it } from 'vitest';
import { type Token, tokensOf } from '../src/tokens.js';

const SPECS = {
  ttl: { type: 'string' },
  yes: { type: 'boolean', short: 'y' },
  help: { type: 'boolean', short: 'h' },
} as const;

const LINES: readonly (readonly string[])[] = [
  [],
  ['run', 'key', '--ttl', '5s'],
  ['--ttl=5s', 'key'],
  ['--ttl=', 'key'],
  ['--ttl=a=b\nc'],
  ['--ttl'],
  ['--ttl', '--yes'],
  ['--yes', 'key', '-y'],
  ['--yes=no'],
  ['-yh', '-x', '-5'],
  ['--unknown', 'value', '--unknown=value'],
  ['-', 'ü', ''],
];

it.each(LINES.map((line) => [line.join(' '), line] as const))('cuts "%s" as Node does', (_, line) => {
  const { tokens } = parseArgs({
    args: [...line],
    options: SPECS,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const wanted = tokens.flatMap((token): Token[] => {
    if (token.kind === 'positional') return [{ kind: token.kind, value: token.value }];
    if (token.kind !== 'option') return [];
    const { kind, name, rawName, value, inlineValue = false } = token;
    return [{ kind, name, rawName, value, inlineValue }];
  });
  expect(tokensOf(line, SPECS)).toEqual(wanted);
});
