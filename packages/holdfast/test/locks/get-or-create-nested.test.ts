/** Once-only work whose functions ask for their own key. */
import { describe, expect, test } from 'vitest';
import { InvalidArgumentError, type Lease, type Locks } from '../../src/index.js';
import { settle, watchOf } from '../engine/stage.js';
import { scene } from './place.js';

describe('a call for the same key', () => {
  const create = (): string => 'made';
  const get = (): null => null;
  const nested: [string, (locks: Locks) => Promise<unknown>][] = [
    ['in its own look', (locks) => locks.getOrCreate('k', { get: () => inner(locks), create })],
    [
      'in its own look for another value',
      (locks) =>
        locks.getOrCreate('k', {
          get: () => locks.getOrCreate('l', { get: () => inner(locks), create }),
          create,
        }),
    ],
    ['in its own creation', (locks) => locks.getOrCreate('k', { get, create: () => inner(locks) })],
    [
      'in a look that takes the lock',
      (locks) => locks.getOrCreate('k', { get: () => locks.withLock('k', get), create }),
    ],
    [
      'in a look that takes the lock for as long as it takes',
      (locks) =>
        locks.getOrCreate('k', {
          get: () => locks.withLock('k', get, { wait: Number.POSITIVE_INFINITY }),
          create,
          wait: Number.POSITIVE_INFINITY,
        }),
    ],
    ['in work under the same key', (locks) => locks.withLock('k', () => inner(locks))],
  ];
  const inner = (locks: Locks): Promise<string> => locks.getOrCreate('k', { get, create });

  test.each(nested)('%s it would wait for itself, and is refused at once', async (_name, run) => {
    const call = watchOf(run(scene().open().locks));
    await settle();
    expect(call.error).toBeInstanceOf(InvalidArgumentError);
    expect(String(call.error)).toMatch(/wait for itself/);
  });

  test('a look and a creation with the option `reentrant` run under the lock that is held already', async () => {
    const { open, place } = scene();
    const { locks } = open();
    const reading = (): Promise<string | null> => locks.withLock('k', place.get, { reentrant: true });
    const creating = (): Promise<string> => locks.withLock('k', () => create(), { reentrant: true });
    const call = watchOf(locks.getOrCreate('k', { get: reading, create: creating }));
    await settle();
    expect([call.value, place.looks]).toEqual([create(), 2]);
    expect(await locks.inspect('k')).toBeNull();
  });

  test('code that a creation started may ask for the value when the creation is over', async () => {
    const { clock, open, place } = scene();
    const { locks } = open();
    let again: ReturnType<typeof watchOf<string>> | undefined;
    const creation = place.creating(10);
    const create = (lease: Lease): Promise<string> => {
      // A promise keeps the context of the creation; a timer of the staged clock would not.
      void new Promise<void>((resolve) => void clock.timer(100, resolve)).then(() => {
        again = watchOf(locks.getOrCreate('k', { get: place.get, create: creation }));
      });
      return creation(lease);
    };
    void locks.getOrCreate('k', { get: place.get, create });
    await clock.advance(200);
    expect(again?.value).toBe('value 1');
  });
});
