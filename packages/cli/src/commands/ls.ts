/** `holdfast ls`: which keys are held or waited for. */
import type { KeyInfo } from 'holdfast';
import type { Command } from '../command.js';
import { EXIT } from '../failure.js';
import { keyJson, keyTable } from '../printing/describe.js';
import { inSession } from '../session.js';

export const ls: Command = {
  name: 'ls',
  operands: { min: 0, max: 1, text: '[PREFIX]' },
  options: ['limit', 'after'],
  summary: 'list the keys that are held or waited for',
  about: 'Lists the keys that somebody holds or waits for, with a line for each holder.',
  examples: [
    ['holdfast ls', 'all keys of the namespace'],
    ['holdfast ls deploy:', 'keys that start with "deploy:"'],
    ["holdfast ls --json | jq -r '.[].key'", 'for a script'],
  ],

  async run({ operands, options }, terminal) {
    const limit = options.count('limit', Number.MAX_SAFE_INTEGER);
    const after = options.text('after');
    return inSession(options, terminal, async (session) => {
      const keys: KeyInfo[] = [];
      const query = {
        prefix: operands[0] ?? '',
        ...(limit !== undefined && { limit }),
        ...(after !== undefined && { after }),
      };
      for await (const info of session.locks.list(query)) keys.push(info);
      if (options.has('json')) terminal.out(JSON.stringify(keys.map(keyJson), null, 2));
      else if (keys.length === 0) terminal.err('No key is held or waited for.');
      else for (const line of keyTable(terminal, keys)) terminal.out(line);
      return EXIT.ok;
    });
  },
};
