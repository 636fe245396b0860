/** A limit on how long a call is waited for. The call itself goes on. */
import { systemClock } from '../../clock.js';

/** Rejects with the error of `onTimeout` once `ms` have passed. The limit keeps no process alive. */
export async function within<T>(ms: number, call: Promise<T>, onTimeout: () => Error): Promise<T> {
  return await new Promise<T>((resolve, reject) => {
    const timer = systemClock.timer(ms, () => reject(onTimeout()));
    timer.keepAlive(false);
    call.finally(() => timer.cancel()).then(resolve, reject);
  });
}
