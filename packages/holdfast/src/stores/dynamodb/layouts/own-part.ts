/**
 * The data that only Holdfast needs, beside the attributes of other software:
 *
 *   holdfast        M  version, token, decision as numbers; `state` has holders and rests as JSON
 *   holdfastEnded   M  the marks (item.ts); absent when there are none
 *
 * Numbers and marks are attributes so that one conditional write can take a lock that another process has released.
 */
import { type Claim, checkVersion, STATE_VERSION, type State } from '../../../protocol/index.js';
import { ownPart } from '../../compare-and-swap/foreign.js';
import {
  type Aliases,
  type Item,
  isAbsent,
  isNotEnded,
  marksIn,
  marksOf,
  number,
  numberIn,
  text,
  textIn,
} from '../item.js';

const NUMBERS = 'holdfast';
const MARKS = 'holdfastEnded';

export const OWN_ATTRIBUTES: readonly string[] = [NUMBERS, MARKS];
/** The attributes that a claim without a read leaves as they are. */
export const OWN_KEPT: readonly string[] = [MARKS];

export function ownAttributes(state: State): Item {
  const { version, token, decision, holders, rests, ended } = ownPart(state);
  const numbers = { version: number(version), token: number(token), decision: number(decision) };
  const own = { ...numbers, state: text(JSON.stringify({ holders, rests })) };
  return { [NUMBERS]: { M: own }, ...(ended.length > 0 && { [MARKS]: marksOf(ended) }) };
}

/** Null where the other software wrote the item. */
export function ownStateIn(item: Item, key: string): State | null {
  const own = item[NUMBERS]?.M ?? {};
  const lists = textIn(own, 'state');
  if (lists === undefined) return null;
  checkVersion(numberIn(own, 'version'), key);
  const { holders, rests } = JSON.parse(lists) as Pick<State, 'holders' | 'rests'>;
  return {
    version: numberIn(own, 'version') ?? 0,
    token: numberIn(own, 'token') ?? 0,
    decision: numberIn(own, 'decision') ?? 0,
    holders,
    rests,
    waiters: [],
    ended: marksIn(item[MARKS]),
  };
}

/** Lower numbers than the grant's, and no mark of its hold. A late duplicate finds its own number, and fails. */
export function isOlder(aliases: Aliases, { hold }: Claim, next: State): string {
  const first = Math.min(next.token, ...next.holders.map(({ token }) => token));
  return `${hasLowerNumbers(aliases, first, next.decision)} AND ${isNotEnded(aliases, MARKS, hold)}`;
}

/** The same for a write that is not a claim; also true where our part is missing. */
export function isAbsentOrOlder(aliases: Aliases, next: number): string {
  return `(${isAbsent(aliases, NUMBERS)} OR (${hasLowerNumbers(aliases, next, next)}))`;
}

function hasLowerNumbers(aliases: Aliases, token: number, decision: number): string {
  const path = (name: string): string => `${aliases.name(NUMBERS)}.${aliases.name(name)}`;
  return [
    `${path('token')} < ${aliases.value(number(token))}`,
    `${path('decision')} < ${aliases.value(number(decision))}`,
    `${path('version')} <= ${aliases.value(number(STATE_VERSION))}`,
  ].join(' AND ');
}
