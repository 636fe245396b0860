/** Commands with somebody who waits for each, and what `decide` makes of them one after the other. */
import { type Claim, type Command, decide, type Reply, type State, type Wake } from '../../protocol/index.js';
import { isDecisive, isUrgent, isWorthWriting, lookingIfFull, type Trial } from './crowd.js';
import type { Desk } from './desk.js';
import type { Found, Reading } from './register.js';

export interface Errand {
  readonly command: Command;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
}

export interface Outcome {
  readonly state: State | null;
  /** Whether there is anything to write. */
  readonly changed: boolean;
  /** Whether it may be written on a guess. */
  readonly decisive: boolean;
  /** Whether it is tried again at once after a lost race. */
  readonly urgent: boolean;
  readonly wakes: readonly Wake[];
  /** Answers each command; call them once the state is stored. */
  readonly answers: readonly (() => void)[];
}

export function decideAll<V>(
  base: Found<V>,
  errands: readonly Errand[],
  { earliest, latest }: Reading,
  trial: Trial,
): Outcome {
  const doubtMs = latest - earliest + base.lateMs;
  const wakes: Wake[] = [];
  const replies: Reply[] = [];
  const answers: (() => void)[] = [];
  let { state } = base;
  let changed = false;
  let urgent = false;
  /** Null as long as the replies can be given as they are. */
  let decisionSeen: number | null = null;
  for (const { command, resolve, reject } of errands) {
    try {
      const asked = lookingIfFull(command, state, latest - doubtMs, trial);
      const decision = decide(state, asked, latest, doubtMs);
      if (decision.changed) state = decision.state;
      changed ||= decision.changed;
      wakes.push(...decision.wakes);
      const { reply } = decision;
      replies.push(reply);
      urgent ||= isUrgent(command, reply, base.state);
      answers.push(() => resolve(decisionSeen === null ? reply : { ...reply, decision: decisionSeen }));
    } catch (error) {
      // This command alone: the others of its batch have nothing to do with it.
      answers.push(() => reject(error));
    }
  }
  const isRefused = replies.every(({ kind }) => kind === 'busy' || kind === 'withdrawn');
  if (
    changed &&
    base.state &&
    state &&
    isRefused &&
    !isWorthWriting(base.state, state, errands, latest - doubtMs, trial)
  ) {
    decisionSeen = base.state.decision;
    return { state: base.state, changed: false, decisive: false, urgent, wakes, answers };
  }
  return { state, changed, decisive: replies.some(isDecisive), urgent, wakes, answers };
}

export function loneClaim(errands: readonly Errand[]): Claim | null {
  const [only] = errands;
  return errands.length === 1 && only?.command.kind === 'claim' ? only.command : null;
}

/** The same errand; the desk learns when it is answered busy. */
export function telling(errand: Errand, desk: Desk): Errand {
  const { command, resolve } = errand;
  if (command.kind !== 'claim') return errand;
  return {
    ...errand,
    resolve(reply) {
      if (reply.kind === 'busy') desk.tell(command.hold, reply);
      resolve(reply);
    },
  };
}

/** An earlier attempt of the same claim was answered while this one waited: a slow store is not asked twice. */
export function isAnswered({ command, resolve }: Errand, desk: Desk, place: number): boolean {
  const told = command.kind === 'claim' ? desk.toldMeanwhile(command.hold, place) : null;
  if (told) resolve(told);
  return told !== null;
}

/** Its own release was seen to pass meanwhile. */
export function isGivenUp({ command, reject }: Errand, desk: Desk, place: number): boolean {
  if (command.kind !== 'claim' || !desk.isEnded(command.hold, place)) return false;
  reject(new Error(`The claim of "${command.key}" was withdrawn while it was under way.`));
  return true;
}
