/**
 * The parts of a state that are attributes in every layout: its numbers, and the marks of ended holds. So one conditional
 * write can take a lock that another process has released.
 */
import { type Claim, checkVersion, type Mark, STATE_VERSION, type State } from '../../protocol/index.js';
import { type Aliases, type AttributeValue, type Item, number, numberIn } from './item.js';

type Numbers = Pick<State, 'version' | 'token' | 'decision'>;

export function numbersOf({ version, token, decision }: Numbers): Item {
  return { version: number(version), token: number(token), decision: number(decision) };
}

/** Throws for a record of a newer format. */
export function numbersIn(item: Item, key: string): Numbers {
  const version = numberIn(item, 'version') ?? 0;
  checkVersion(version, key);
  return { version, token: numberIn(item, 'token') ?? 0, decision: numberIn(item, 'decision') ?? 0 };
}

/** A map by process, so that a condition can find a mark: process → { n, until, at }. */
export function marksOf(ended: readonly Mark[]): AttributeValue {
  const marks = ended.map(({ process, number: n, until }, at): [string, AttributeValue] => [
    process,
    { M: { n: number(n), until: number(until), at: number(at) } },
  ]);
  return { M: Object.fromEntries(marks) };
}

/** In their order, which a map does not keep: the oldest marks are dropped first. */
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

/** How long an unused item is kept, where the table has a TTL. DynamoDB may delete it days later. */
const KEPT_SECONDS = 2 * 24 * 60 * 60;

export function timeToLive(usedMs: number): AttributeValue {
  return number(Math.ceil(usedMs / 1_000) + KEPT_SECONDS);
}

/** The path of a number in an item. */
type PathOf = (name: string) => string;

/**
 * A condition: lower numbers than the grant's, and no mark of its hold in the attribute `marks`. A late duplicate finds
 * its own decision, or a higher one, and fails; a claim that its withdrawal overtook finds the mark, and fails too.
 */
export function isOlder(
  aliases: Aliases,
  pathOf: PathOf,
  marks: string,
  { hold }: Claim,
  next: State,
): string {
  const first = Math.min(next.token, ...next.holders.map(({ token }) => token));
  const mark = `${aliases.name(marks)}.${aliases.name(hold.process)}`;
  const isBefore = `${mark}.${aliases.name('n')} < ${aliases.value(number(hold.number))}`;
  const isNotEnded = `(attribute_not_exists(${mark}) OR ${isBefore})`;
  return `${hasLowerNumbers(aliases, pathOf, first, next.decision)} AND ${isNotEnded}`;
}

export function hasLowerNumbers(aliases: Aliases, pathOf: PathOf, token: number, decision: number): string {
  return [
    `${pathOf('token')} < ${aliases.value(number(token))}`,
    `${pathOf('decision')} < ${aliases.value(number(decision))}`,
    `${pathOf('version')} <= ${aliases.value(number(STATE_VERSION))}`,
  ].join(' AND ');
}
