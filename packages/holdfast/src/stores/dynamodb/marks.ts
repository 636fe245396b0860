/** Marks of ended holds as a map by process, so that a condition can look one up: process → { n, until, at }. */
import type { HoldId, Mark } from '../../protocol/index.js';
import type { Aliases } from './expressions.js';
import { type AttributeValue, type Item, number, numberIn } from './values.js';

export function marksOf(ended: readonly Mark[]): AttributeValue {
  const marks = ended.map(({ process, number: n, until }, at): [string, AttributeValue] => [
    process,
    { M: { n: number(n), until: number(until), at: number(at) } },
  ]);
  return { M: Object.fromEntries(marks) };
}

/** A map has no order of its own, and the oldest marks go first. */
export function marksIn(value: AttributeValue | undefined): readonly Mark[] {
  const marks: Item = value?.M ?? {};
  return Object.entries(marks)
    .map(([process, { M: mark = {} }]) => ({
      at: numberIn(mark, 'at') ?? 0,
      mark: { process, number: numberIn(mark, 'n') ?? 0, until: numberIn(mark, 'until') ?? 0 },
    }))
    .sort((a, b) => a.at - b.at)
    .map(({ mark }) => mark);
}

/** Nothing in the map of this name says that the hold has ended. */
export function isNotEnded(aliases: Aliases, attribute: string, { process, number: count }: HoldId): string {
  const mark = `${aliases.name(attribute)}.${aliases.name(process)}`;
  return `(attribute_not_exists(${mark}) OR ${mark}.${aliases.name('n')} < ${aliases.value(number(count))})`;
}
