/** `holdfast ls`: the keys with holders or waiters. */
import type { Command } from '../command.js';
import { EXIT } from '../failure.js';
import { keysInUse } from '../keys-in-use.js';
import { keyJson, keyTable } from '../printing/describe.js';
import { jsonText } from '../printing/terminal.js';
import { inSession } from '../session.js';

export const ls: Command = {
  name: 'ls',
  operands: { min: 0, max: 1, text: '[PREFIX]' },
  options: ['limit', 'after'],
  summary: 'list the keys that are held or waited for',
  about: 'Lists the keys with holders or waiters, with a line for each holder.',
  examples: [
    ['holdfast ls', 'all keys of the namespace'],
    ['holdfast ls deploy:', 'keys that start with "deploy:"'],
    ["holdfast ls --json | jq -r '.[].key'", 'for a script'],
  ],

  async run({ operands, options }, terminal) {
    const limit = options.count('limit', Number.MAX_SAFE_INTEGER);
    const after = options.text('after');
    return inSession(options, terminal, async (session) => {
      const query = {
        prefix: operands[0] ?? '',
        ...(limit !== undefined && { limit }),
        ...(after !== undefined && { after }),
      };
      const { keys, refusals } = await keysInUse(session.locks, query);
      if (options.has('json')) terminal.out(jsonText(keys.map(keyJson), 2));
      else if (keys.length === 0 && refusals.length === 0) terminal.err('No key is held or waited for.');
      else if (keys.length > 0) for (const line of keyTable(terminal, keys)) terminal.out(line);
      for (const { message } of refusals) terminal.warn(message);
      return refusals.length === 0 ? EXIT.ok : EXIT.unavailable;
    });
  },
};
