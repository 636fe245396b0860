/** `holdfast evict`: ends the leases of a key. Asks first, and ends only holders that the operator saw (F31). */
import { isatty } from 'node:tty';
import type { EvictOptions, KeyInfo } from 'holdfast';
import type { Command } from '../command.js';
import { EXIT, Failure, usageFailure } from '../failure.js';
import { holdersText } from '../printing/describe.js';
import { jsonText, quote, type Terminal } from '../printing/terminal.js';
import { statusOfSignal } from '../run/signals.js';
import { inSession, type Session } from '../session.js';

export const evict: Command = {
  name: 'evict',
  operands: { min: 1, max: 1, text: 'KEY [--token N] [--reason TEXT] [--yes]' },
  options: ['token', 'reason', 'yes', 'quiet'],
  summary: 'end the leases of KEY without their holders',
  about: `Ends the leases of KEY's holders; the next waiter gets the lock. The holder learns of it within moments and stops,
but its work may not stop at once: only a resource that checks fencing tokens is safe. Asks first, unless --yes is
given.`,
  examples: [
    ['holdfast evict deploy:web', 'shows the holder and asks'],
    ['holdfast evict deploy:web --yes --reason "host retired"', 'for a script'],
    ['holdfast evict workers --token 1794887240614000', 'one holder of a semaphore'],
  ],

  async run({ operands, options }, terminal) {
    const key = operands[0] ?? '';
    const asks = !options.has('yes');
    if (asks && !(isatty(0) && isatty(2))) {
      throw usageFailure('evict asks for confirmation; without a terminal, give --yes');
    }
    const token = options.count('token', Number.MAX_SAFE_INTEGER);
    const reason = options.text('reason');
    const given = { ...(token !== undefined && { token }), ...(reason !== undefined && { reason }) };
    return inSession(options, terminal, async (session) => {
      const count = asks ? await evictSeen(session, key, given) : await session.locks.evict(key, given);
      report(terminal, options.has('json'), key, count, token);
      return EXIT.ok;
    });
  },
};

async function evictSeen({ locks }: Session, key: string, given: EvictOptions): Promise<number> {
  const { token } = given;
  const seen = named(await locks.inspect(key), token);
  if (!seen || seen.holders.length === 0) return 0;
  const answer = await confirm(`${quote(key)} is held by ${holdersText(seen)}.\nEvict? [y/N] `);
  if (answer !== 'yes') {
    const status = answer === 'interrupted' ? statusOfSignal('SIGINT') : EXIT.other;
    throw new Failure(status, 'nothing was done');
  }
  const now = named(await locks.inspect(key), token);
  if (tokensOf(now) !== tokensOf(seen)) {
    throw new Failure(EXIT.other, `the holders of ${quote(key)} changed meanwhile; no lease was ended`);
  }
  if (token !== undefined) return locks.evict(key, given);
  return locks.evict(key, { ...given, upToToken: Math.max(...seen.holders.map((holder) => holder.token)) });
}

/** Keeps only the holder with this token, which may also be a later token of an exclusive hold. */
function named(info: KeyInfo | null, token: number | undefined): KeyInfo | null {
  if (!info || token === undefined) return info;
  const holders = info.holders.filter((holder) =>
    holder.permits === holder.capacity ? holder.token <= token : holder.token === token,
  );
  return { ...info, holders };
}

function tokensOf(info: KeyInfo | null): string {
  return (info?.holders ?? []).map(({ token }) => token).join();
}

type Answer = 'yes' | 'no' | 'left' | 'interrupted';

/** Ctrl-D and a closed terminal mean no. Ctrl-C has its own status, as in a shell. */
async function confirm(question: string): Promise<Answer> {
  // Loaded only here, because few commands ask.
  const { createInterface } = await import('node:readline');
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await new Promise<Answer>((resolve) => {
    prompt.once('SIGINT', () => resolve('interrupted'));
    prompt.once('close', () => resolve('left'));
    prompt.question(question, (text) => resolve(/^y(es)?$/i.test(text.trim()) ? 'yes' : 'no'));
  });
  prompt.close();
  // End the line of the question.
  if (answer === 'left' || answer === 'interrupted') process.stderr.write('\n');
  return answer;
}

function report(
  terminal: Terminal,
  json: boolean,
  key: string,
  count: number,
  token: number | undefined,
): void {
  const name = quote(key) + (token === undefined ? '' : ` with token ${token}`);
  const people = count === 1 ? '1 holder' : `${count} holders`;
  if (json) terminal.out(jsonText({ key, evicted: count }));
  else terminal.out(count === 0 ? `There is no holder of ${name}.` : `Evicted ${people} of ${name}.`);
}
