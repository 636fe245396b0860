/** `holdfast acquire`: takes a lock that outlives this process, for the next steps of a pipeline. */
import type { Lease } from 'holdfast';
import type { Command } from '../command.js';
import { EXIT, Failure, usageFailure } from '../failure.js';
import type { Options } from '../options/options.js';
import { jsonText, type Terminal } from '../printing/terminal.js';
import { checkUnused, giveBack, leaseJson, removeHandoffs, writeHandoffs } from '../run/handoffs.js';
import { interruptible } from '../run/interruptible.js';
import { acquire as acquireLocks, readLockRequest } from '../run/request.js';

export const acquire: Command = {
  name: 'acquire',
  operands: { min: 1, max: 1, text: 'KEY --ttl TIME [OPTIONS]' },
  options: [
    ...['key', 'shared', 'ttl', 'wait', 'owner', 'metadata', 'capacity', 'permits'],
    ...['min-hold', 'handoff', 'quiet', 'verbose'],
  ] as const,
  summary: 'acquire KEY for later steps: it stays locked when this command ends',
  about: `Acquires the lock KEY, prints the lease as a string, and ends. The lock stays taken until \`release\`, or until the
ttl is over unless \`renew\` gives it a new one. The string is a secret: with it, anybody can release the lock. With
--handoff it is written to a file that only its user can read, and nothing is printed; a file with a lease in it is
refused. If the lock is not acquired in time, acquire exits 75.`,
  examples: [
    [
      'HOLDFAST_HANDOFF=$(holdfast acquire deploy:web --ttl 15m) || exit; export HOLDFAST_HANDOFF',
      'in a variable, for the later steps of a script',
    ],
    [
      'holdfast acquire deploy:web --ttl 15m --handoff lease || exit',
      'in a file, for the later steps of a pipeline',
    ],
    [
      'holdfast acquire deploy:web --ttl 15m --wait 1h --metadata build=42',
      'waits longer, and notes the purpose',
    ],
  ],

  run(invocation, terminal) {
    const { options } = invocation;
    if (!options.has('ttl'))
      throw usageFailure(
        'acquire needs --ttl TIME: how long the lock stays taken unless it is renewed or released',
      );
    const request = readLockRequest(invocation);
    const file = options.text('handoff');
    if (file !== undefined) checkUnused(file);
    return interruptible(options, request.keys, terminal, async (session, relay) => {
      if (session.store.traits.shared === 'process')
        throw usageFailure(`a lock in ${session.url} ends with this command; give another --store`);
      const { leases } = await acquireLocks(session.locks, request, relay.stopped);
      const handoffs: string[] = [];
      try {
        for (const lease of leases) handoffs.push(await lease.handoff());
        await deliver(leases, handoffs, options, terminal);
      } catch (error) {
        await giveBack(leases, handoffs, session.locks, terminal);
        throw error;
      }
      return EXIT.ok;
    });
  },
};

async function deliver(
  leases: readonly Lease[],
  handoffs: readonly string[],
  options: Options,
  terminal: Terminal,
): Promise<void> {
  const file = options.text('handoff');
  if (file !== undefined) writeHandoffs(file, handoffs);
  if (options.has('json')) {
    const shown = leases.map((lease, at) => ({
      ...leaseJson(lease),
      ...(file === undefined && { handoff: handoffs[at] }),
    }));
    terminal.raw(`${jsonText(shown, 2)}\n`);
  } else if (file === undefined) terminal.raw(`${handoffs.join('\n')}\n`);
  await terminal.flushed();
  if (!terminal.failed()) return;
  if (file !== undefined) removeHandoffs(file);
  throw new Failure(EXIT.other, 'the lease could not be printed, so the lock was released');
}
