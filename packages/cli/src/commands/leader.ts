/** `holdfast leader`: the present leader. */
import type { Command } from '../command.js';
import { EXIT } from '../failure.js';
import { formatTime } from '../printing/describe.js';
import { jsonText, printable, quote } from '../printing/terminal.js';
import { inSession } from '../session.js';

export const leader: Command = {
  name: 'leader',
  operands: { min: 1, max: 1, text: 'KEY' },
  options: ['quiet'],
  summary: 'show the leader of KEY',
  about:
    'Shows the leader of KEY: its owner, since when, and the token of its term. Exits 1 when there is none.',
  examples: [
    ['holdfast leader scheduler', 'for people'],
    ['holdfast leader scheduler --json | jq -r .leader.owner', 'for a script; null without a leader'],
  ],

  async run({ operands, options }, terminal) {
    const key = operands[0] ?? '';
    return inSession(options, terminal, async (session) => {
      const found = await session.locks.elect(key).leader();
      if (options.has('json')) {
        const json = found && {
          ...found,
          metadata: found.metadata ?? null,
          since: found.since.toISOString(),
        };
        terminal.out(jsonText({ key, leader: json }, 2));
      } else if (!found) terminal.out(`${quote(key)} has no leader.`);
      else {
        const { owner, since, token, metadata } = found;
        terminal.out(`${printable(owner)} leads since ${formatTime(since)}, token ${token}`);
        if (metadata) terminal.out(`  metadata ${printable(JSON.stringify(metadata))}`);
      }
      return found ? EXIT.ok : EXIT.other;
    });
  },
};
