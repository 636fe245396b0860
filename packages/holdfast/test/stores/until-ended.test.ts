import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { UntilEnded } from '../../src/stores/clients/until-ended.js';

it('gives what the work gives: its value, or its error', async () => {
  const until = new UntilEnded();
  expect(await until.wait(Promise.resolve('done'))).toBe('done');
  await expect(until.wait(Promise.reject(new Error('failed')))).rejects.toThrow('failed');
});

it('rejects every wait at the end, and those that begin after it', async () => {
  const until = new UntilEnded();
  const never = new Promise<never>(() => undefined);
  const waits = [until.wait(never), until.wait(never)];
  until.end(new Error('closed'));
  for (const wait of waits) await expect(wait).rejects.toThrow('closed');
  await expect(until.wait(never)).rejects.toThrow('closed');
  await expect(until.wait(Promise.resolve('late'))).rejects.toThrow('closed');
});

it('keeps nothing of the waits that are over', async () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const until = new UntilEnded();
  const growth = async (waits: number): Promise<number> => {
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let count = 0; count < waits; count++) {
      await until.wait(Promise.resolve(Array.from({ length: 100 }, () => count)));
    }
    collect();
    return process.memoryUsage().heapUsed - before;
  };
  await growth(1_000);
  // Kept, each would take 800 bytes and more.
  expect(await growth(20_000)).toBeLessThan(4_000_000);
  until.end(new Error('closed'));
});
