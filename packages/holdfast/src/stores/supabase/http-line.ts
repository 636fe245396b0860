/** Says a batch of commands to a database as one HTTP call. */
import { type Command, UnsupportedError } from '../../protocol/index.js';
import { type Answer, answersIn, type Line } from '../postgres/caller.js';
import type { Call } from './client.js';

export function httpLine(call: Call): Line {
  return {
    // Every call is a request of its own: fewer are better.
    mostTogether: Number.POSITIVE_INFINITY,
    async ask(commands: readonly Command[], cleanUp: number, hints: boolean): Promise<readonly Answer[]> {
      const answers = answersIn(await call('apply', { commands, clean_up: cleanUp, hints }));
      if (answers !== 'isolated') return answers;
      throw new UnsupportedError(
        'Transactions there are not READ COMMITTED, and locks need that. Set it for the role that PostgREST ' +
          "connects as: ALTER ROLE authenticator SET default_transaction_isolation = 'read committed'.",
      );
    },
    inWords: (error) => error,
  };
}
