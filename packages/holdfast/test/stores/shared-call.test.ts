import { expect, it } from 'vitest';
import type { Clock } from '../../src/clock.js';
import { ATTEMPT_MS } from '../../src/protocol/index.js';
import { SharedCall } from '../../src/stores/compare-and-swap/shared-call.js';

/** A clock moved by hand, and answers given by hand. */
function scene() {
  const answers: ((answer: string) => void)[] = [];
  let nowMs = 0;
  const clock = { monotonicMs: () => nowMs } as Clock;
  const sharedCall = new SharedCall(() => new Promise<string>((resolve) => answers.push(resolve)), clock);
  return { sharedCall, answers, pass: (ms: number) => (nowMs += ms) };
}

it('those who ask at the same time are answered by one call', async () => {
  const { sharedCall, answers } = scene();
  const asked = [sharedCall.run(), sharedCall.run()];
  answers[0]?.('now');
  expect(await Promise.all(asked)).toEqual(['now', 'now']);
  expect(answers).toHaveLength(1);
  void sharedCall.run();
  expect(answers, 'an answer that came is not kept').toHaveLength(2);
});

it('F32: one that may be lost holds up nobody who comes later', async () => {
  const { sharedCall, answers, pass } = scene();
  void sharedCall.run();
  pass(ATTEMPT_MS);
  const later = sharedCall.run();
  expect(answers).toHaveLength(2);
  answers[1]?.('anew');
  expect(await later).toBe('anew');
});
