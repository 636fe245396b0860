/** `holdfast doctor`: checks that the store is reachable, whose clock decides, whether waiters are woken, and what is promised. */
import type { Command } from '../command.js';
import { EXIT } from '../failure.js';
import type { Colour, Terminal } from '../printing/terminal.js';
import { openSession } from '../session.js';
import { type Check, examine } from './doctor-checks.js';

export const doctor: Command = {
  name: 'doctor',
  operands: { min: 0, max: 0, text: '' },
  takesCommandLine: false,
  options: [],
  summary: 'check the store: reachable, whose clock, does push work, what is promised',
  about: `Checks the store: is it reachable and how fast, whose clock decides and how far it is from this machine's, are waiters
woken, and what does it promise as it is configured. For this it acquires and releases a lock in a namespace of its own.
Exits 0 when all is well or there are only warnings, 1 when a check fails, 69 when the store does not answer.`,
  examples: [
    ['holdfast doctor', 'the store in use'],
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
