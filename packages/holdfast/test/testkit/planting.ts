/** How to plant a bug around `decide`: change what it sees, or what it leaves. */
import {
  type Command,
  type Decision,
  decide,
  EMPTY_STATE,
  type Holder,
  type State,
  sameHold,
} from '../../src/protocol/index.js';
import type { Decide, Planting } from './planted-store.js';

export interface PlantedBug extends Planting {
  readonly name: string;
  /** The case of the suite that must catch it. */
  readonly caughtBy: RegExp;
  /** Whether random commands against `decide` must show it too; not where the bug is in the store's upkeep. */
  readonly seenByModel: boolean;
  /** The case that shows it to users of the real engine, where one does. */
  readonly caughtByUsers?: RegExp;
}

export const bug = (name: string, caughtBy: RegExp, broken: Decide): PlantedBug => {
  return { name, caughtBy, decide: broken, seenByModel: true };
};

/** The state before, changed in a way that makes `decide` go wrong. */
export const seeing =
  (change: (state: State, command: Command, now: number) => State): Decide =>
  (state, command, now) =>
    decide(change(state ?? EMPTY_STATE, command, now), command, now);

/** The decision afterwards, changed. */
export const leaving =
  (change: (decision: Decision, command: Command, before: State, now: number) => Decision): Decide =>
  (state, command, now) =>
    change(decide(state, command, now), command, state ?? EMPTY_STATE, now);

export const holderOf = (state: State, command: Command): Holder | undefined =>
  command.kind === 'evict' ? undefined : state.holders.find((holder) => sameHold(holder.hold, command.hold));

export const withHolders = (decision: Decision, change: (holder: Holder) => Holder): Decision => ({
  ...decision,
  state: { ...decision.state, holders: decision.state.holders.map(change) },
});
