/**
 * Counts the timers that code has set and not yet cleared, unreferenced ones too, which Node itself does not list.
 * Must be started before the code to be counted is loaded.
 */

/** @type {Set<NodeJS.Timeout>} */
const live = new Set();

export function countTimers() {
  const { setTimeout, setInterval, clearTimeout } = globalThis;
  const keep = (/** @type {NodeJS.Timeout} */ timer) => {
    live.add(timer);
    return timer;
  };
  const drop = (/** @type {NodeJS.Timeout | string | number | undefined} */ timer) => {
    if (typeof timer === 'object') live.delete(timer);
    clearTimeout(timer);
  };
  const setCounted = (/** @type {(...given: unknown[]) => void} */ run, /** @type {number} */ delayMs) => {
    const timer = setTimeout((/** @type {unknown[]} */ ...given) => {
      live.delete(timer);
      run(...given);
    }, delayMs);
    return keep(timer);
  };
  const setRepeating = (/** @type {() => void} */ run, /** @type {number} */ delayMs) =>
    keep(setInterval(run, delayMs));
  Object.assign(globalThis, {
    setTimeout: setCounted,
    setInterval: setRepeating,
    clearTimeout: drop,
    clearInterval: drop,
  });
}

export function liveTimers() {
  return live.size;
}
