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

/** Work goes on for so long before the page may draw and scroll. */
const SLICE_MS = 8;
const { port1, port2 } = new MessageChannel();
/** @type {(() => void)[]} */
const paused = [];
port1.onmessage = () => paused.shift()?.();

/** Lets the page draw and scroll. Not by a timer: those of a hidden page run once a second. */
function pause() {
  return new Promise((resolve) => {
    paused.push(() => resolve(null));
    port2.postMessage(null);
  });
}

/** Waits wherever work has gone on for long enough. */
export class Slices {
  constructor() {
    this.untilMs = performance.now() + SLICE_MS;
  }

  get isOver() {
    return performance.now() > this.untilMs;
  }

  async next() {
    await pause();
    this.untilMs = performance.now() + SLICE_MS;
  }
}

/**
 * The first slice is run at once, so what takes no time is done when this returns. Returns what cancels it.
 * @template T
 * @param {Generator<void, T>} steps
 * @param {(result: T) => void} done
 */
export function inSlices(steps, done) {
  const slices = new Slices();
  let isCancelled = false;
  void (async () => {
    for (let step = steps.next(); ; step = steps.next()) {
      if (step.done) return done(step.value);
      if (slices.isOver) await slices.next();
      if (isCancelled) return;
    }
  })();
  return () => {
    isCancelled = true;
  };
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

/** @param {number} ms */
export function timeLeft(ms) {
  return ms > 0 ? `${duration(ms + 999)} left` : 'ending';
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
