/** Time as the store tells it, timers, and durations for people. */

/** Behind the store's clock by as little as any answer so far: the one that travelled fastest is nearest. */
let aheadMs = Number.NEGATIVE_INFINITY;

/** @param {number} storeMs */
export function noteStoreTime(storeMs) {
  aheadMs = Math.max(aheadMs, storeMs - performance.now());
}

/** With a new connection: another service, or this machine slept. */
export function forgetStoreTime() {
  aheadMs = Number.NEGATIVE_INFINITY;
}

/** The store's clock now, as near as this page knows it. */
export function storeNow() {
  return Number.isFinite(aheadMs) ? aheadMs + performance.now() : Date.now();
}

/**
 * @param {number} ms
 * @param {() => void} run
 */
export function every(ms, run) {
  setInterval(run, ms);
}

/**
 * Returns what cancels it.
 * @param {number} ms
 * @param {() => void} run
 */
export function after(ms, run) {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}

/**
 * `12 s`, `3 min 05 s`, `2 h 10 min`, `4 d 3 h`.
 * @param {number} ms
 */
export function duration(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const two = (/** @type {number} */ value) => String(value).padStart(2, '0');
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${two(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${two(minutes % 60)} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

const CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });
const DAY_AND_CLOCK = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });

/** @param {number} ms */
export function clock(ms) {
  return CLOCK.format(ms);
}

/**
 * The day too, where it is not today.
 * @param {number} ms
 */
export function moment(ms) {
  const isToday = new Date(ms).toDateString() === new Date(storeNow()).toDateString();
  return (isToday ? CLOCK : DAY_AND_CLOCK).format(ms);
}
