/** Candidates and observers of an election. */
import type { Election, Leader, Lease } from '../../src/api.js';
import { watchOf } from '../engine/stage.js';

/** Runs a loop whose body leads until it is told to go on. */
export function candidate(election: Election) {
  const terms: Lease[] = [];
  let goOn = (): void => undefined;
  let leave = false;
  const loop = (async () => {
    for await (const term of election) {
      terms.push(term);
      await new Promise<void>((resolve) => {
        goOn = resolve;
        term.signal.addEventListener('abort', () => resolve(), { once: true });
      });
      if (leave) break;
    }
  })();
  return {
    terms,
    loop: watchOf(loop),
    /** The body ends; the loop goes on. */
    finish: () => goOn(),
    /** The body leaves the loop. */
    quit: () => {
      leave = true;
      goOn();
    },
  };
}

export function observer(election: Election, signal: AbortSignal) {
  const seen: (Leader | null)[] = [];
  const loop = (async () => {
    for await (const leader of election.observe({ signal, every: '100ms' })) seen.push(leader);
  })();
  return { seen, loop: watchOf(loop) };
}

export const owners = (seen: readonly (Leader | null)[]) => seen.map((leader) => leader?.owner ?? null);
