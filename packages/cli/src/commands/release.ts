/** `holdfast release`: ends a lease of `acquire`. */
import { LeaseLostError } from 'holdfast';
import type { Command } from '../command.js';
import { EXIT } from '../failure.js';
import { jsonText } from '../printing/terminal.js';
import { forEachHandoff, keepingHandoffs, readHandoffs } from '../run/handoffs.js';
import { quoted } from '../run/held.js';
import { interruptible } from '../run/interruptible.js';

export const release: Command = {
  name: 'release',
  operands: { min: 0, max: 0, text: '[--handoff FILE]' },
  options: ['handoff', 'quiet', 'verbose'],
  summary: 'release a lease of `acquire`',
  about: `Releases the lease that \`acquire\` left in --handoff or in HOLDFAST_HANDOFF, and removes the file. Exits 76 when the
lease was over before: it was not renewed in time, was released or was evicted, and another may have held the lock
meanwhile.`,
  examples: [
    ['holdfast release --handoff lease', 'as the last step, also after a failure'],
    ["trap 'holdfast release --quiet' EXIT", 'in a script, with the lease in HOLDFAST_HANDOFF'],
  ],

  run({ options }, terminal) {
    const handoffs = readHandoffs(options);
    return interruptible(options, [], terminal, async (session) => {
      // Handoffs without an answer of the store are kept for another try.
      await keepingHandoffs(options, handoffs, terminal, async (left) => {
        const released: string[] = [];
        await forEachHandoff(handoffs, session, async (handoff) => {
          try {
            const lease = await session.locks.adopt(handoff);
            await lease.release();
            released.push(lease.key);
          } catch (error) {
            if (error instanceof LeaseLostError) left.splice(left.indexOf(handoff), 1);
            throw error;
          }
          left.splice(left.indexOf(handoff), 1);
        });
        if (options.has('json')) terminal.out(jsonText({ released }));
        else terminal.out(`Released ${quoted(released)}.`);
      });
      return EXIT.ok;
    });
  },
};
