/** What is said to the script: the texts of one command after the other. What is null is an empty text. */
import type { Command } from '../../protocol/index.js';

/** Always as many of a kind: 10 for a claim, 7 for a renewal, 4 for a release, 2 for an eviction. */
export function pushTexts(texts: string[], command: Command): void {
  switch (command.kind) {
    case 'claim': {
      const { hold, owner, permits, capacity, ttlMs, queue, inbox, metadata } = command;
      texts.push('claim', hold.process, `${hold.number}`, owner, `${permits}`, `${capacity}`, `${ttlMs}`);
      texts.push(queue ? '1' : '0', inbox ?? '', metadata ?? '');
      return;
    }
    case 'renew': {
      const { hold, ttlMs, block, added } = command;
      texts.push('renew', hold.process, `${hold.number}`, `${ttlMs}`, block ? '1' : '0');
      texts.push(added ? `${added.ms}` : '', added ? `${added.expiresAt}` : '');
      return;
    }
    case 'release':
      texts.push('release', command.hold.process, `${command.hold.number}`, `${command.minHoldMs}`);
      return;
    case 'evict':
      texts.push('evict', `${command.upToToken}`);
  }
}
