/**
 * What is said to the script: one text a command. Numbers come first, a blank after each, then the texts; where there
 * are several, their lengths in bytes are among the numbers. What is null is an empty text.
 *
 * One text, because every further argument of a call costs its client and its server a microsecond or two.
 */
import type { Command } from '../../protocol/index.js';

/** Asks for the record, and decides nothing. */
export const READ = 'L';

/** `channelsBegin` comes before an inbox: in a record, it is the channel where hints for it are published. */
export function textOfCommand(command: Command, channelsBegin: string): string {
  switch (command.kind) {
    case 'claim': {
      const { hold, owner, permits, capacity, ttlMs, queue, inbox, metadata } = command;
      const { process, number } = hold;
      const channel = inbox === null ? '' : channelsBegin + inbox;
      const lengths = `${bytesOf(process)} ${bytesOf(owner)} ${bytesOf(channel)}`;
      const numbers = `${number} ${permits} ${capacity} ${ttlMs} ${queue ? 1 : 0} ${lengths}`;
      return `C ${numbers} ${process}${owner}${channel}${metadata ?? ''}`;
    }
    case 'renew': {
      const { hold, ttlMs, block, added } = command;
      const addition = added ? `${added.ms} ${added.expiresAt}` : '0 -1';
      return `N ${hold.number} ${ttlMs} ${block ? 1 : 0} ${addition} ${hold.process}`;
    }
    case 'release':
      return `R ${command.hold.number} ${command.minHoldMs} ${command.hold.process}`;
    case 'evict':
      return `E ${command.upToToken}`;
  }
}

function bytesOf(text: string): number {
  return Buffer.byteLength(text);
}
