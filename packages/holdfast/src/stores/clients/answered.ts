/** Limits how long a call is awaited. It may still be executed afterwards. */
import { systemClock } from '../../clock.js';

/** Less than the time after which the adapter begins another claim beside hanging ones. */
const ANSWER_MS_MAX = 9_000;

export function answered<T>(server: string, call: Promise<T>, limitMs = ANSWER_MS_MAX): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = systemClock.timer(limitMs, () => {
      reject(new Error(`${server} did not answer in ${limitMs} ms: is it running, and can it be reached?`));
    });
    call.finally(() => timer.cancel()).then(resolve, reject);
  });
}
