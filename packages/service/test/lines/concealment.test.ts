import { memoryStore } from 'holdfast/memory';
import type { Command } from 'holdfast/protocol';
import { afterEach, expect, it, vi } from 'vitest';
import { Bulletin } from '../../src/bulletin.js';
import { Desk } from '../../src/lines/desk.js';

afterEach(() => {
  vi.restoreAllMocks();
});

const release = (number: number): Command => {
  return {
    kind: 'release',
    key: `a/${number}`,
    hold: { process: `secret-${number}-of`, number },
    minHoldMs: 0,
  };
};

it('an outage costs no more to look through than it has words, however many commands fail by it', async () => {
  const apply = (commands: readonly Command[]) =>
    commands.map(() => Promise.reject(new Error('The line is cut.')));
  const desk = new Desk({ ...memoryStore(), apply }, new Bulletin());
  const commands = Array.from({ length: 300 }, (_, number) => release(number));
  const looks = vi.spyOn(String.prototype, 'includes');
  const answers = await Promise.allSettled(commands.map((command) => desk.send(command)));
  expect(answers.every(({ status }) => status === 'rejected')).toBe(true);
  expect(looks.mock.calls.length).toBeLessThan(20 * commands.length);
});

it('an error that repeats the whole batch shows no hold of it, to whichever command it is the answer', async () => {
  const apply = (commands: readonly Command[]) =>
    commands.map((_, index) => Promise.reject(new Error(`${index}: ${JSON.stringify(commands)}`)));
  const desk = new Desk({ ...memoryStore(), apply }, new Bulletin());
  const answers = await Promise.allSettled([1, 2, 3].map((number) => desk.send(release(number))));
  for (const answer of answers) {
    const { message, stack } = (answer as PromiseRejectedResult).reason as Error;
    expect(message).toContain('"hold":{"process":"[hidden]"');
    expect(`${message}${stack}`).not.toMatch(/secret-\d-of/);
  }
});
