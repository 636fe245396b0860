/**
 * A number has one place. Two constants of one name and value are a copy, and a name of `protocol/` means the same number
 * everywhere.
 */
import { expect, it } from 'vitest';
import { matching, read } from '../tree.js';

/** Copies that are known, and have to go. */
const KNOWN = ['HOLDERS_SHOWN', 'METADATA_BYTES_MAX', 'PORT_MAX', 'REMEMBERED_MAX'];

const CONSTANT = /^(?:export )?const ([A-Z][A-Z0-9_]*) = ([\d_.]+(?: [*/+-] [\d_.]+)*);/gm;

interface Defined {
  readonly name: string;
  readonly value: string;
  readonly file: string;
}

const defined = matching(/^packages\/(?:holdfast|service)\/src\/.*\.ts$/).flatMap(
  (file): readonly Defined[] =>
    [...read(file).matchAll(CONSTANT)].map(([, name = '', value = '']) => ({ name, value, file })),
);

const isShared = ({ file }: Defined): boolean => file.startsWith('packages/holdfast/src/protocol/');

function copiesOf(one: Defined): readonly Defined[] {
  return defined.filter(
    (other) => other.name === one.name && other !== one && (other.value === one.value || isShared(other)),
  );
}

const copied = [...new Set(defined.filter((one) => copiesOf(one).length > 0).map(({ name }) => name))];

it('is not defined twice', () => {
  expect(defined.length).toBeGreaterThan(100);
  expect(copied.filter((name) => !KNOWN.includes(name))).toEqual([]);
});

it('every known copy is still there: otherwise the list is shorter', () => {
  expect(KNOWN.filter((name) => !copied.includes(name))).toEqual([]);
});
