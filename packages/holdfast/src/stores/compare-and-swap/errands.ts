/** Commands with somebody who waits for each, and what `decide` makes of them one after the other. */
import { type Claim, type Command, decide, type Reply, type State, type Wake } from '../../protocol/index.js';
import type { Found, Reading } from './register.js';

export interface Errand {
  readonly command: Command;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
}

export interface Outcome {
  readonly state: State | null;
  readonly changed: boolean;
  readonly wakes: readonly Wake[];
  /** What to tell each errand, once it is true. */
  readonly answers: readonly (() => void)[];
}

export function decideAll<V>(
  base: Found<V>,
  errands: readonly Errand[],
  { earliest, latest }: Reading,
): Outcome {
  const doubtMs = latest - earliest + base.lateMs;
  const wakes: Wake[] = [];
  const answers: (() => void)[] = [];
  let { state } = base;
  let changed = false;
  for (const { command, resolve, reject } of errands) {
    try {
      const decision = decide(state, command, latest, doubtMs);
      if (decision.changed) state = decision.state;
      changed ||= decision.changed;
      wakes.push(...decision.wakes);
      answers.push(() => resolve(decision.reply));
    } catch (error) {
      // This command alone: the others of its batch have nothing to do with it.
      answers.push(() => reject(error));
    }
  }
  return { state, changed, wakes, answers };
}

export function loneClaim(errands: readonly Errand[]): Claim | null {
  const [only] = errands;
  return errands.length === 1 && only?.command.kind === 'claim' ? only.command : null;
}
