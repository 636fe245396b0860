/** `holdfast evict`: an operator ends whatever holds a key. Asks first, and ends nobody whom the operator did not see. */
import { createInterface } from 'node:readline';
import { isatty } from 'node:tty';
import type { KeyInfo } from 'holdfast';
import type { Command } from '../command.js';
import { holdersText } from '../describe.js';
import { EXIT, Failure, usageFailure } from '../exit.js';
import { printable, type Terminal } from '../output.js';
import { openSession, type Session } from '../session.js';
import { statusOfSignal } from '../signals.js';

export const evict: Command = {
  name: 'evict',
  operands: { min: 1, max: 1, text: 'KEY [--yes]' },
  takesCommandLine: false,
  options: ['yes'],
  summary: 'take KEY away from whoever holds it',
  about: `Ends whatever holds KEY now; whoever waits for it goes on. The holder learns of it within moments and stops, but
what it has begun may not stop at once: only a resource that checks fencing tokens is safe. Asks first, unless --yes
is given.`,
  examples: [
    ['holdfast evict deploy:web', 'shows the holder and asks'],
    ['holdfast evict deploy:web --yes', 'for a script'],
  ],

  async run({ operands, options }, terminal) {
    const key = operands[0] ?? '';
    const asks = !options.has('yes');
    if (asks && !(isatty(0) && isatty(2))) {
      throw usageFailure('evict asks before it acts; without a terminal, give --yes');
    }
    const session = await openSession(options);
    try {
      const count = asks ? await evictSeen(session, key) : await session.locks.evict(key);
      report(terminal, options.has('json'), key, count);
      return EXIT.ok;
    } finally {
      await session.close(terminal);
    }
  },
};

async function evictSeen({ locks }: Session, key: string): Promise<number> {
  const seen = await locks.inspect(key);
  if (!seen || seen.holders.length === 0) return 0;
  const answer = await confirm(`"${printable(key)}" is held by ${holdersText(seen)}.\nTake it away? [y/N] `);
  if (answer !== 'yes') {
    const status = answer === 'interrupted' ? statusOfSignal('SIGINT') : EXIT.other;
    throw new Failure(status, 'nothing was done');
  }
  const now = await locks.inspect(key);
  if (tokensOf(now) !== tokensOf(seen)) {
    throw new Failure(EXIT.other, `"${printable(key)}" changed hands meanwhile; nothing was done`);
  }
  return locks.evict(key, { upToToken: Math.max(...seen.holders.map(({ token }) => token)) });
}

function tokensOf(info: KeyInfo | null): string {
  return (info?.holders ?? []).map(({ token }) => token).join();
}

type Answer = 'yes' | 'no' | 'left' | 'interrupted';

/** Ctrl-D and a terminal that goes away are a no; Ctrl-C is told apart, as a shell does. */
async function confirm(question: string): Promise<Answer> {
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await new Promise<Answer>((resolve) => {
    prompt.once('SIGINT', () => resolve('interrupted'));
    prompt.once('close', () => resolve('left'));
    prompt.question(question, (text) => resolve(/^y(es)?$/i.test(text.trim()) ? 'yes' : 'no'));
  });
  prompt.close();
  // Nobody has ended the line of the question.
  if (answer === 'left' || answer === 'interrupted') process.stderr.write('\n');
  return answer;
}

function report(terminal: Terminal, json: boolean, key: string, count: number): void {
  const name = `"${printable(key)}"`;
  const people = count === 1 ? '1 holder' : `${count} holders`;
  if (json) terminal.out(JSON.stringify({ key, evicted: count }));
  else terminal.out(count === 0 ? `Nobody holds ${name}.` : `Evicted ${people} of ${name}.`);
}
