/** `holdfast doctor`: is the store reachable, whose clock is it, does it wake waiters, what does it promise. */
import type { Command } from '../command.js';
import { type Check, examine } from '../examination.js';
import { EXIT } from '../exit.js';
import type { Colour, Terminal } from '../output.js';
import { openSession } from '../session.js';

export const doctor: Command = {
  name: 'doctor',
  operands: { min: 0, max: 0, text: '' },
  takesCommandLine: false,
  options: [],
  summary: 'check the store: reachable, whose clock, does push work, what is promised',
  about: `Checks the store: is it reachable and how fast, whose clock decides and how far it is from this machine's, are waiters
woken, and what does it promise as it is configured. It takes and releases a lock of its own for that, under a name that
nobody else uses. Exits 0 when all is well or there are only warnings, 1 when a check fails, 69 when there is no answer.`,
  examples: [
    ['holdfast doctor', 'the store that you use now'],
    ['holdfast doctor --store sqlite:/var/lib/app/locks.db', 'another one'],
    ['holdfast doctor --json | jq \'.checks[] | select(.level != "good")\'', 'for a script'],
  ],

  async run({ options }, terminal) {
    const session = await openSession(options);
    try {
      const { server, checks } = await examine(session, options);
      const failed = checks.some(({ level }) => level === 'failed');
      if (options.has('json')) {
        terminal.out(JSON.stringify({ store: session.url, server, ok: !failed, checks }, null, 2));
      } else {
        terminal.out(`${terminal.paint('bold', session.url)}  ${server}`);
        for (const check of checks) terminal.out(lineOf(terminal, check));
      }
      return failed ? EXIT.other : EXIT.ok;
    } finally {
      await session.close(terminal);
    }
  },
};

const MARKS: { readonly [level in Check['level']]: readonly [mark: string, colour: Colour] } = {
  good: ['ok', 'green'],
  note: ['note', 'cyan'],
  warning: ['warning', 'yellow'],
  failed: ['FAILED', 'red'],
};

function lineOf(terminal: Terminal, { level, text }: Check): string {
  const [mark, colour] = MARKS[level];
  return `  ${terminal.paint(colour, mark.padEnd(7))}  ${text}`;
}
