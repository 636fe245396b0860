/** `holdfast evict`: an operator ends whatever holds a key. Asks first, and ends nobody whom the operator did not see. */
import { createInterface } from 'node:readline/promises';
import type { KeyInfo } from 'holdfast';
import type { Command } from '../command.js';
import { holdersText } from '../describe.js';
import { EXIT, Failure, usageFailure } from '../exit.js';
import { printable, type Terminal } from '../output.js';
import { openSession, type Session } from '../session.js';

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
    if (asks && !(process.stdin.isTTY && process.stderr.isTTY)) {
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
  const yes = await confirm(`"${printable(key)}" is held by ${holdersText(seen)}.\nTake it away? [y/N] `);
  if (!yes) throw new Failure(EXIT.other, 'nothing was done');
  const now = await locks.inspect(key);
  if (tokensOf(now) !== tokensOf(seen)) {
    throw new Failure(EXIT.other, `"${printable(key)}" changed hands meanwhile; nothing was done`);
  }
  return locks.evict(key);
}

function tokensOf(info: KeyInfo | null): string {
  return (info?.holders ?? []).map(({ token }) => token).join();
}

async function confirm(question: string): Promise<boolean> {
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await prompt.question(question)).trim());
  } finally {
    prompt.close();
  }
}

function report(terminal: Terminal, json: boolean, key: string, count: number): void {
  const name = `"${printable(key)}"`;
  const people = count === 1 ? '1 holder' : `${count} holders`;
  if (json) terminal.out(JSON.stringify({ key, evicted: count }));
  else terminal.out(count === 0 ? `Nobody holds ${name}.` : `Evicted ${people} of ${name}.`);
}
