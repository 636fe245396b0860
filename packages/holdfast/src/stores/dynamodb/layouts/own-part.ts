/**
 * What only Holdfast needs, beside the attributes of other software:
 *
 *   holdfast        M  version, token, decision as numbers; `state` has holders and rests as JSON
 *   holdfastEnded   M  the marks (marks.ts); absent when there are none
 *
 * Numbers and marks lie open so that one conditional write can take a lock that another process has released.
 */
import { type Claim, checkVersion, STATE_VERSION, type State } from '../../../protocol/index.js';
import { ownPart } from '../../compare-and-swap/foreign.js';
import { type Aliases, isAbsent } from '../expressions.js';
import { isNotEnded, marksIn, marksOf } from '../marks.js';
import { type Item, number, numberIn, text, textIn } from '../values.js';

const NUMBERS = 'holdfast';
const MARKS = 'holdfastEnded';

export const OWN_ATTRIBUTES: readonly string[] = [NUMBERS, MARKS];
/** What a claim leaves as it is, though it has not seen it. */
export const OWN_KEPT: readonly string[] = [MARKS];

export function ownAttributes(state: State): Item {
  const { version, token, decision, holders, rests, ended } = ownPart(state);
  const numbers = { version: number(version), token: number(token), decision: number(decision) };
  const own = { ...numbers, state: text(JSON.stringify({ holders, rests })) };
  return { [NUMBERS]: { M: own }, ...(ended.length > 0 && { [MARKS]: marksOf(ended) }) };
}

/** Null where there is no such part: then the other software wrote the item. */
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

/** Lower numbers than those of the grant, and nothing that marks its hold as ended. A late duplicate finds its own. */
export function isOlder(aliases: Aliases, { hold }: Claim, next: State): string {
  const first = Math.min(next.token, ...next.holders.map(({ token }) => token));
  return `${hasLowerNumbers(aliases, first, next.decision)} AND ${isNotEnded(aliases, MARKS, hold)}`;
}

/** The same for a write that is no claim: no part of ours at all will do, too. */
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
