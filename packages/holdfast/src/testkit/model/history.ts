/**
 * Explains the commands and replies of one key by `decide`: there must be one order of decision in which every field of
 * every reply is what `decide` gives.
 */
import assert from 'node:assert/strict';
import {
  type Command,
  decide,
  EMPTY_STATE,
  type Reply,
  type State,
  type Wake,
} from '../../protocol/index.js';
import { meetsEnd } from './moments.js';

export interface Entry {
  readonly command: Command;
  readonly reply: Reply;
}

/** The earliest time at which the reply may have been decided. */
export function earliestOf({ now, doubtMs = 0 }: Reply): number {
  return now - doubtMs;
}

export interface Explained {
  readonly state: State;
  /** Whether each command met an end. */
  readonly met: readonly boolean[];
  readonly wakes: readonly Wake[];
}

/** Explains a command whose place in the order is known. Throws when the reply differs from `decide`. */
export function explainNext(state: State, { command, reply }: Entry): Explained {
  const decision = decide(state, command, reply.now, reply.doubtMs);
  assert.deepEqual(reply, decision.reply, `the store's reply to ${JSON.stringify(command)} is not decide's`);
  return { state: decision.state, met: [meetsEnd(state, command, earliestOf(reply))], wakes: decision.wakes };
}

/** Explains a history of several concurrent connections. Throws when no order of decision explains it. */
export function explainAll(history: readonly Entry[]): Explained {
  const search = new Search(history);
  const found = search.from(EMPTY_STATE, 0);
  if (!found) throw search.furthest;
  return found;
}

class Search {
  private readonly groups: readonly (readonly Entry[])[];
  private depth = -1;
  furthest: Error = new Error('An empty history needs no explanation.');

  constructor(history: readonly Entry[]) {
    const groups = new Map<number, Entry[]>();
    for (const entry of history) {
      const own = groups.get(entry.reply.decision);
      if (own) own.push(entry);
      else groups.set(entry.reply.decision, [entry]);
    }
    this.groups = [...groups.entries()]
      .sort(([a], [b]) => a - b)
      .map(([, entries]) => entries.sort((a, b) => a.reply.now - b.reply.now));
  }

  /** A group is one command that changed the state, and the commands after it that changed nothing. */
  from(state: State, depth: number): Explained | null {
    const group = this.groups[depth];
    if (!group) return { state, met: [], wakes: [] };
    for (const changer of group[0]?.reply.decision === state.decision ? [null] : group) {
      const here = this.explainGroup(state, changer, group, depth);
      const rest = here && this.from(here.state, depth + 1);
      if (rest) {
        return { state: rest.state, met: [...here.met, ...rest.met], wakes: [...here.wakes, ...rest.wakes] };
      }
    }
    return null;
  }

  private explainGroup(
    before: State,
    changer: Entry | null,
    group: readonly Entry[],
    depth: number,
  ): Explained | null {
    const met: boolean[] = [];
    const wakes: Wake[] = [];
    let state = before;
    try {
      for (const entry of changer ? [changer, ...group.filter((other) => other !== changer)] : group) {
        const next = explainNext(state, entry);
        if (entry !== changer) assert.equal(next.state, state, 'a second command claims the same decision');
        met.push(...next.met);
        wakes.push(...next.wakes);
        state = next.state;
      }
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      if (depth > this.depth) {
        this.depth = depth;
        this.furthest = error;
      }
      return null;
    }
    return { state, met, wakes };
  }
}
