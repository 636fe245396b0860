import { StoreError } from 'holdfast';
import { memoryStore } from 'holdfast/memory';
import type { Command } from 'holdfast/protocol';
import { describe, expect, it } from 'vitest';
import { ServiceEvents } from '../../src/service-events.js';
import { blanked, concealer, observedStore } from '../../src/waiting/observed-store.js';

/** Parts of each other, and of what could be put in their place. */
const PARTS = ['e', 'd', 'i', 'n', '[', 'h', ']', '…', 'dd', 'en', '[h', 'id', 'de'];

describe('what is hidden in the errors of a store', () => {
  it('never makes a text longer, whatever clients call their holds', () => {
    const text = 'invalid byte sequence';
    expect(blanked(text, PARTS).length).toBeLessThanOrEqual(text.length);
  });

  it('an error that many commands share does not grow with each of them', () => {
    const commands = PARTS.map((process): Command => {
      return { kind: 'renew', key: 'a/b', hold: { process, number: 1 }, ttlMs: 1_000, block: false };
    });
    const shared = new StoreError('invalid byte sequence', { operation: 'renew' });
    const conceal = concealer(commands);
    for (const _ of commands) conceal(shared);
    expect(shared.message.length).toBeLessThanOrEqual('invalid byte sequence'.length);
  });

  it('is hidden whole, also where one secret begins with another', () => {
    expect(blanked('a.b abc a.bc', ['a.b', 'a.bc'])).toBe('… abc …');
    expect(blanked('nothing', [])).toBe('nothing');
  });

  it('is hidden from whichever command a batch that is repeated in an error answers', async () => {
    const release = (number: number): Command => {
      const hold = { process: `secret-${number}-of`, number };
      return { kind: 'release', key: `a/${number}`, hold, minHoldMs: 0 };
    };
    const apply = (commands: readonly Command[]) =>
      commands.map((_, index) => Promise.reject(new Error(`${index}: ${JSON.stringify(commands)}`)));
    const store = observedStore({ ...memoryStore(), apply }, new ServiceEvents());
    const answers = await Promise.allSettled(store.apply([1, 2, 3].map(release)));
    for (const answer of answers) {
      const { message, stack } = (answer as PromiseRejectedResult).reason as Error;
      expect(message).toContain('"hold":{"process":"…"');
      expect(`${message}${stack}`).not.toMatch(/secret-\d-of/);
    }
  });
});
