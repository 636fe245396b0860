/** Async iterators for callers who may leave at any time: by the iterator's own methods, or by a signal. */
import type { AbortListeners } from '../queue/abort-listeners.js';

interface Endable {
  readonly signal?: AbortSignal | undefined;
}

/**
 * A generator whose `return` and `throw` also end its waiting. Those of plain generators take effect only after the
 * waiting. `optionsOf` is called with the first `next`, and may throw. `ending` aborts with the signal of the options too.
 */
export function endable<T, O extends Endable>(
  { aborts }: { readonly aborts: AbortListeners },
  optionsOf: () => O,
  generate: (ending: AbortSignal, options: O) => AsyncGenerator<T>,
): AsyncGenerator<T> {
  const ending = new AbortController();
  const following = (async function* () {
    const options = optionsOf();
    const { signal } = options;
    const follower = { onAbort: () => ending.abort(signal?.reason) };
    if (signal?.aborted) follower.onAbort();
    else if (signal) aborts.add(signal, follower);
    try {
      yield* generate(ending.signal, options);
    } finally {
      if (signal) aborts.remove(signal, follower);
    }
  })();
  const end = following.return.bind(following);
  const fail = following.throw.bind(following);
  return Object.assign(following, {
    return(value: undefined) {
      ending.abort();
      return end(value);
    },
    throw(error: unknown) {
      ending.abort();
      return fail(error);
    },
  });
}
