/** `holdfast renew`: renews a lease of `acquire`, with a new ttl if wanted. */
import type { Lease } from 'holdfast';
import type { Command } from '../command.js';
import { EXIT } from '../failure.js';
import { formatDuration, formatTime } from '../printing/describe.js';
import { jsonText, quote } from '../printing/terminal.js';
import { forEachHandoff, keepingHandoffs, leaseJson, readHandoffs } from '../run/handoffs.js';
import { interruptible } from '../run/interruptible.js';
import { ttlOf } from '../run/request.js';

export const renew: Command = {
  name: 'renew',
  operands: { min: 0, max: 0, text: '[--handoff FILE] [--ttl TIME]' },
  options: ['handoff', 'ttl', 'quiet', 'verbose'],
  summary: 'renew a lease of `acquire`, and check that it is still held',
  about: `Renews the lease that \`acquire\` left in --handoff or in HOLDFAST_HANDOFF: from now on it lives for the whole ttl
again, or for --ttl. Exits 76 when the lease is over: it was not renewed in time, was released or was evicted. Then
stop, because another may hold the lock.`,
  examples: [
    ['holdfast renew --handoff lease || exit', 'before every step that takes long'],
    ['holdfast renew --handoff lease --ttl 1h && ./migrate.sh', 'a longer ttl for a longer step'],
    ["holdfast renew --handoff lease --json | jq '.[0].token'", 'the fencing token'],
  ],

  run({ options }, terminal) {
    const handoffs = readHandoffs(options);
    const ttl = ttlOf(options);
    return interruptible(options, [], terminal, async (session) => {
      await keepingHandoffs(options, handoffs, terminal, async (left) => {
        const renewed: Renewed[] = [];
        await forEachHandoff(handoffs, session, async (handoff) => {
          const lease = await session.locks.adopt(handoff, ttl === undefined ? {} : { ttl });
          const { remainingMs } = lease;
          // The ttl is part of a handoff. Failed handoffs stay as they were, because the store may only have been away.
          left[handoffs.indexOf(handoff)] = await lease.handoff();
          renewed.push({ lease, remainingMs });
        });
        const shown = renewed.map(({ lease }) => leaseJson(lease));
        if (options.has('json')) terminal.out(jsonText(shown, 2));
        else for (const one of renewed) terminal.out(sentence(one));
      });
      return EXIT.ok;
    });
  },
};

interface Renewed {
  readonly lease: Lease;
  readonly remainingMs: number;
}

function sentence({ lease: { key, token, expiresAt }, remainingMs }: Renewed): string {
  const until = `${formatTime(expiresAt)} (in ${formatDuration(remainingMs)})`;
  return `Renewed ${quote(key)} until ${until}, token ${token}.`;
}
