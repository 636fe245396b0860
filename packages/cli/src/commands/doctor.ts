/**
 * `holdfast doctor`: checks that the store is reachable, whose clock decides, whether waiters are woken, and what it
 * guarantees.
 */
import { AcquireTimeoutError, createLocks, type Locks, type Store } from 'holdfast';
import { POLL_MS } from 'holdfast/protocol';
import { monotonicMs, wallMs } from '../clock.js';
import type { Command } from '../command.js';
import { EXIT } from '../failure.js';
import type { Options } from '../options/options.js';
import { formatDuration } from '../printing/describe.js';
import { type Colour, jsonText, printable, type Terminal } from '../printing/terminal.js';
import { inSession, open, type Session, storeUrl } from '../session.js';

export const doctor: Command = {
  name: 'doctor',
  operands: { min: 0, max: 0, text: '' },
  options: [],
  without: ['namespace'],
  summary: 'check the store: reachability, clock, wake-ups, guarantees',
  about: `Checks the store: whether it is reachable and how fast, its clock and the difference to this machine's, wake-ups, and
the guarantees of its configuration. For this it acquires and releases a lock in a namespace of its own.
Exits 0 when all is well or there are only warnings, 1 when a check fails, 69 when the store does not answer.`,
  examples: [
    ['holdfast doctor', 'the store in use'],
    ['holdfast doctor --store sqlite:/var/lib/app/locks.db', 'another one'],
    ['holdfast doctor --json | jq \'.checks[] | select(.level != "good")\'', 'for a script'],
  ],

  async run({ options }, terminal) {
    return inSession(options, terminal, async (session) => {
      const { server, checks } = await examine(session, options);
      const failed = checks.some(({ level }) => level === 'failed');
      if (options.has('json')) {
        terminal.out(jsonText({ store: session.url, server, ok: !failed, checks }, 2));
      } else {
        terminal.out(`${terminal.paint('bold', printable(session.url))}  ${printable(server)}`);
        for (const check of checks) terminal.out(lineOf(terminal, check));
      }
      return failed ? EXIT.other : EXIT.ok;
    });
  },
};

const MARKS: { readonly [level in Check['level']]: readonly [mark: string, colour: Colour] } = {
  good: ['good', 'green'],
  note: ['note', 'cyan'],
  warning: ['warning', 'yellow'],
  failed: ['FAILED', 'red'],
};

function lineOf(terminal: Terminal, { level, text }: Check): string {
  const [mark, colour] = MARKS[level];
  return `  ${terminal.paint(colour, mark.padEnd(7))}  ${printable(text)}`;
}

interface Check {
  readonly name: string;
  readonly level: 'good' | 'note' | 'warning' | 'failed';
  readonly text: string;
}

/** Only for keys of `doctor`. */
const NAMESPACE = 'holdfast-doctor';
const PROBES = 5;
const WAKES = 3;
const WAIT_MS = 5_000;
const SKEW_MS_FINE = 1_000;

async function examine(
  session: Session,
  options: Options,
): Promise<{ readonly server: string; readonly checks: readonly Check[] }> {
  let best = await probe(session.locks);
  for (let count = 1; count < PROBES; count++) {
    const next = await probe(session.locks);
    if (next.roundTripMs < best.roundTripMs) best = next;
  }
  const { traits } = session.store;
  const { guarantees, roundTripMs, skewMs } = best;
  const checks: Check[] = [
    { name: 'reachable', level: 'good', text: `Reachable: answers in ${tenths(roundTripMs)}.` },
    clockCheck(traits, skewMs),
    await pushCheck(session.store, options),
    sharedCheck(traits),
    durableCheck(traits),
    ...guarantees.findings.map(({ level, text }): Check => ({ name: 'promise', level, text })),
  ];
  return { server: guarantees.server, checks };
}

async function probe(locks: Locks) {
  const sentMs = monotonicMs();
  await locks.inspect('any');
  const roundTripMs = monotonicMs() - sentMs;
  const sentWallMs = wallMs();
  // A probe may run for a while, but reads the store's clock first, about half a round trip from now.
  const guarantees = await locks.probe();
  return { guarantees, roundTripMs, skewMs: guarantees.now - (sentWallMs + roundTripMs / 2) };
}

function clockCheck({ clock, clockErrorMs }: Store['traits'], skewMs: number): Check {
  const whose = {
    store: "the store's clock decides",
    machine: "this machine's clock decides",
    estimate: `an estimate of the store's clock decides, right to ${formatDuration(clockErrorMs)}`,
  }[clock];
  const direction = skewMs < 0 ? 'behind' : 'ahead of';
  const skew = `it is ${tenths(Math.abs(skewMs))} ${direction} this machine's wall clock`;
  // No decision uses the wall clock; only the times for people (since, until) are wrong.
  const level = Math.abs(skewMs) <= SKEW_MS_FINE ? 'good' : 'note';
  return { name: 'clock', level, text: `Clock: ${whose}; ${skew}.` };
}

/** Opens a second connection if it reaches the same locks, as from a second process. */
async function pushCheck(store: Store, options: Options): Promise<Check> {
  const name = 'push';
  if (!store.traits.push) {
    return {
      name,
      level: 'note',
      text: 'Wake-ups: the store cannot wake waiters; they poll every 50 to 500 ms.',
    };
  }
  const other = store.traits.shared === 'process' ? store : await open(await storeUrl(options));
  const names = { namespace: NAMESPACE, owner: `doctor:${process.pid}` };
  const first = createLocks(store, names);
  const second = createLocks(other, names);
  try {
    const times: number[] = [];
    for (let count = 0; count < WAKES; count++) times.push(await wakeUpMs(first, second));
    // A waiter without a wake-up claims again at its next poll. If it claimed in half of that time, it was woken.
    return wakingCheck(Math.min(...times), Math.min(POLL_MS, store.traits.livenessPollMs ?? POLL_MS) / 2);
  } catch (error) {
    if (!(error instanceof AcquireTimeoutError)) throw error;
    return {
      name,
      level: 'failed',
      text: 'Wake-ups: do not work; a waiter did not get the lock after its release.',
    };
  } finally {
    // The session still uses the first store; the second one is closed with its only user.
    await Promise.all([first.close(), second.close()]);
  }
}

function wakingCheck(bestMs: number, wokenMsMax: number): Check {
  const name = 'push';
  const after = `${tenths(bestMs)} after its release`;
  if (bestMs > wokenMsMax) {
    return { name, level: 'failed', text: `Wake-ups: do not work; a waiter had the lock only ${after}.` };
  }
  return { name, level: 'good', text: `Wake-ups: work; a waiter has the lock ${after}.` };
}

async function wakeUpMs(first: Locks, second: Locks): Promise<number> {
  const key = `push:${process.pid}:${wallMs()}`;
  const options = { ttl: WAIT_MS, wait: WAIT_MS };
  const lease = await first.acquire(key, options);
  // A release before the other waits would measure nothing.
  const met = new Promise<void>((resolve) => {
    second.on('waiting', () => resolve());
  });
  const waiting = second.acquire(key, options);
  await Promise.race([waiting, met]);
  const releasedMs = monotonicMs();
  await lease.release();
  const next = await waiting;
  const wokenMs = monotonicMs() - releasedMs;
  await next.release();
  return wokenMs;
}

function sharedCheck({ shared }: Store['traits']): Check {
  const name = 'shared';
  if (shared === 'process') return { name, level: 'warning', text: 'Shared: only within one process.' };
  if (shared === 'machine') return { name, level: 'good', text: 'Shared: by all processes of this machine.' };
  return { name, level: 'good', text: 'Shared: by everybody who can reach it.' };
}

function durableCheck({ durable, shared }: Store['traits']): Check {
  const name = 'durable';
  if (durable) return { name, level: 'good', text: 'Durable: locks outlive a restart of the store.' };
  if (shared === 'network') {
    return {
      name,
      level: 'note',
      text: 'Durable: as the server is configured; see the findings below.',
    };
  }
  return { name, level: 'warning', text: 'Durable: no; a restart of the store frees every lock.' };
}

function tenths(ms: number): string {
  return ms < 10 ? `${ms.toFixed(1)}ms` : formatDuration(ms);
}
