/**
 * The only place that reads clocks, sets timers and draws randomness. Tests replace it, to run the whole engine in
 * simulated time.
 */
import { randomBytes } from 'node:crypto';
import { monotonicMs, wallMs } from './time.js';

/** A timer that was set. */
export interface Timer {
  cancel(): void;
  /** Whether this timer keeps the process alive. A new one does. */
  keepAlive(yes: boolean): void;
}

/** The time, timers and randomness of the library. */
export interface Clock {
  /** Never steps; stops while the machine is suspended. */
  monotonicMs(): number;
  /** Counts through suspension; may be set by hand. */
  wallMs(): number;
  timer(delayMs: number, run: () => void): Timer;
  /** Runs after the event loop has turned, and so after waiting timers and sockets. */
  afterTurn(run: () => void): void;
  /** From 0 up to, not including, 1. */
  random(): number;
  /** Unguessable: 128 bits. */
  randomId(): string;
}

/** Both clocks, read at the same time. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** Kept from the start, so that fake timers of a test, which replace the global, do not stop it. */
const afterTurn = setImmediate;

/** Longer delays fire at once in Node (F12). */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** The clock of this machine. */
export const systemClock: Clock = {
  monotonicMs,
  wallMs,
  timer(delayMs, run) {
    const timeout = setTimeout(run, Math.min(Math.max(Math.ceil(delayMs), 0), TIMER_MS_MAX));
    return {
      cancel: () => clearTimeout(timeout),
      // In Cloudflare Workers a timer is a number, and keeps nothing alive.
      keepAlive: (yes) => timeout[yes ? 'ref' : 'unref']?.(),
    };
  },
  afterTurn: (run) => void afterTurn(run),
  random: () => Math.random(),
  randomId: () => randomBytes(16).toString('base64url'),
};

const STARTED_MS = performance.timeOrigin;

/** The wall clock's time at start, carried on by the monotonic clock: a wall clock set by hand changes nothing. */
export const steadyMs = (): number => STARTED_MS + performance.now();

/**
 * The runtime's own clock; never steps. Node counts from the boot of the machine, without sleep; Bun and Deno count from
 * the start of the process. So times of two processes cannot be compared: see stores/sqlite/machine-clock.ts.
 */
export function runtimeMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}
