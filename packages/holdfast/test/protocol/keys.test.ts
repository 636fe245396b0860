/** The order of keys. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { compareKeys, keysInOrder } from '../../src/protocol/index.js';
import { RUNS } from './scripts.js';

/** Both sides of where UTF-16 and code points differ, and of each length in UTF-8. */
const LETTERS = [
  'a',
  '\u007f',
  '\u0080',
  '\u07ff',
  '\u0800',
  '\ud7ff',
  '\ue000',
  '\uffff',
  '\u{10000}',
  '\u{10ffff}',
];
const keys = fc.string({ unit: fc.constantFrom(...LETTERS), maxLength: 4 });

it('keys sort as their bytes of UTF-8 do', () => {
  fc.assert(
    fc.property(keys, keys, (a, b) => {
      expect(Math.sign(compareKeys(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
    }),
    RUNS,
  );
});

it('a list goes through keys of its prefix, in order, behind the key it is given', () => {
  const all = ['b', 'a\u{10000}', 'a', 'a\uffff', 'ab'];
  expect(keysInOrder(all, { prefix: '' })).toEqual(['a', 'ab', 'a\uffff', 'a\u{10000}', 'b']);
  expect(keysInOrder(all, { prefix: 'a', after: 'a' })).toEqual(['ab', 'a\uffff', 'a\u{10000}']);
  expect(keysInOrder(all, { prefix: 'a', after: 'a\uffff' })).toEqual(['a\u{10000}']);
});
