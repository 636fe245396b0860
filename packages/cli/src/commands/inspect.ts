/** `holdfast inspect`: the holders and waiters of one key. */
import type { KeyInfo } from 'holdfast';
import type { Command } from '../command.js';
import { EXIT } from '../failure.js';
import { elapsed, formatDuration, holderText, keyJson, permitsText } from '../printing/describe.js';
import { jsonText, printable, quote, type Terminal } from '../printing/terminal.js';
import { inSession } from '../session.js';

export const inspect: Command = {
  name: 'inspect',
  operands: { min: 1, max: 1, text: 'KEY' },
  options: ['quiet'],
  summary: 'show the holders and waiters of KEY',
  about: `Shows the holders of KEY, since when and until when, and its waiters in the order of the queue. Exits 0 when KEY is
held, and 1 when it is free; with --quiet it prints nothing.`,
  examples: [
    ['holdfast inspect deploy:web', 'for people'],
    ['if holdfast inspect deploy:web --quiet; then echo held; fi', 'for a script'],
    [
      "holdfast inspect deploy:web --json | jq '.holders | length'",
      'how many hold it; 0 when the key is free',
    ],
  ],

  async run({ operands, options }, terminal) {
    const key = operands[0] ?? '';
    return inSession(options, terminal, async (session) => {
      const info = await session.locks.inspect(key);
      if (options.has('json')) terminal.out(jsonText(info ? keyJson(info) : freeKey(key), 2));
      else if (!info) terminal.out(`${quote(key)} is free.`);
      else for (const line of linesOf(terminal, info)) terminal.out(line);
      return info && info.holders.length > 0 ? EXIT.ok : EXIT.other;
    });
  },
};

/** Same shape as for a key in use, so that scripts need no special case. */
function freeKey(key: string): object {
  return { key, now: null, holders: [], waiters: [] };
}

function linesOf(terminal: Terminal, { key, now, holders, waiters }: KeyInfo): string[] {
  const lines = [terminal.paint('bold', printable(key))];
  for (const holder of holders) {
    lines.push(`  held by ${holderText(holder, now)}`);
    lines.push(`    token ${holder.token}, permits ${permitsText(holder)}`);
    if (holder.metadata) lines.push(`    metadata ${printable(JSON.stringify(holder.metadata))}`);
  }
  waiters.forEach((waiter, at) => {
    const since = formatDuration(elapsed(waiter.since, now));
    const permits = waiter.capacity === 1 ? '' : `, permits ${permitsText(waiter)}`;
    lines.push(`  ${at + 1}. waiting: ${printable(waiter.owner)}, for ${since}${permits}`);
  });
  return lines;
}
