import { expect, it } from 'vitest';
import type { Clock } from '../../src/clock.js';
import { ATTEMPT_MS } from '../../src/protocol/index.js';
import { Question } from '../../src/stores/compare-and-swap/question.js';

/** A clock moved by hand, and answers given by hand. */
function scene() {
  const answers: ((answer: string) => void)[] = [];
  let nowMs = 0;
  const clock = { monotonicMs: () => nowMs } as Clock;
  const question = new Question(() => new Promise<string>((resolve) => answers.push(resolve)), clock);
  return { question, answers, pass: (ms: number) => (nowMs += ms) };
}

it('those who ask at the same time are answered by one question', async () => {
  const { question, answers } = scene();
  const asked = [question.put(), question.put()];
  answers[0]?.('now');
  expect(await Promise.all(asked)).toEqual(['now', 'now']);
  expect(answers).toHaveLength(1);
  void question.put();
  expect(answers, 'an answer that came is not kept').toHaveLength(2);
});

it('F32: one that may be lost holds up nobody who comes later', async () => {
  const { question, answers, pass } = scene();
  void question.put();
  pass(ATTEMPT_MS);
  const later = question.put();
  expect(answers).toHaveLength(2);
  answers[1]?.('anew');
  expect(await later).toBe('anew');
});
