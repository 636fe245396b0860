/** `holdfast watch`: a live view on a terminal, a line per change elsewhere. */
import { type KeyChange, type KeyInfo, type Locks, StoreError, type WatchOptions } from 'holdfast';
import { pause, wallMs } from '../clock.js';
import type { Command } from '../command.js';
import { EXIT, usageFailure } from '../failure.js';
import { type KeysInUse, keysInUse } from '../keys-in-use.js';
import { formatTime, keyJson, keyTable, names } from '../printing/describe.js';
import { jsonText, printable, type Terminal } from '../printing/terminal.js';
import { unlessAborted } from '../run/signals.js';
import { openSession } from '../session.js';

const EVERY_MS = 500;
const EVERY_MS_MIN = 50;
const EVERY_MS_MAX = 3_600_000;

/** Hides the cursor, and cuts long lines off: wrapped lines would push the rest off the screen. */
const BEGIN = '\u001b[?25l\u001b[?7l';
const END = '\u001b[?7h\u001b[?25h';
const HOME = '\u001b[H';
const CLEAR_SCREEN = '\u001b[2J';
const CLEAR_LINE_END = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';

export const watch: Command = {
  name: 'watch',
  operands: { min: 0, max: 1, text: '[PREFIX]' },
  options: ['every'],
  summary: 'watch keys being acquired, waited for and released',
  about: `Shows who holds which key, live. On a terminal it redraws; elsewhere it prints a line for every change, with --json a
JSON line. Ends with Ctrl-C.`,
  examples: [
    ['holdfast watch', 'the live view'],
    ['holdfast watch deploy: --every 100ms', 'read the keys more often'],
    ['holdfast watch --json >> changes.jsonl', 'for machines'],
  ],

  async run({ operands, options }, terminal) {
    const everyMs = options.durationMs('every') ?? EVERY_MS;
    if (everyMs < EVERY_MS_MIN) throw usageFailure(`--every must be at least ${EVERY_MS_MIN}ms`);
    if (everyMs > EVERY_MS_MAX) throw usageFailure('--every must be at most 1h');
    const session = await openSession(options);
    const stopping = new AbortController();
    const stop = (): void => stopping.abort();
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, stop);
    const query = { prefix: operands[0] ?? '', every: everyMs, signal: stopping.signal };
    try {
      const live = terminal.isTty && !options.has('json');
      await (live
        ? drawLive(session.locks, query, session.url, terminal)
        : printChanges(session.locks, query, options.has('json'), terminal));
    } catch (error) {
      if (!stopping.signal.aborted) throw error;
    } finally {
      stop();
      await session.close(terminal);
    }
    return EXIT.ok;
  },
};

type Query = Required<WatchOptions> & { readonly every: number };

async function printChanges(locks: Locks, query: Query, json: boolean, terminal: Terminal): Promise<void> {
  for await (const { kind, info } of locks.watch(query)) {
    if (json) terminal.out(jsonText({ kind, ...keyJson(info) }));
    else terminal.out(`${formatTime(new Date(wallMs()))}  ${changeText(kind, info)}`);
    // A slow reader gets fewer views, so that old ones do not fill the memory.
    await unlessAborted(terminal.flushed(), query.signal);
    // The reader has left (`holdfast watch | head -1`), or the disk is full.
    if (terminal.failed()) return;
  }
}

function changeText(kind: KeyChange['kind'], { key, holders, waiters }: KeyInfo): string {
  const name = printable(key);
  if (kind === 'gone') return `${name}  is free`;
  const who = holders.map((holder) => {
    return `${printable(holder.owner)}${holder.resting ? ' (cooling down)' : ''} (token ${holder.token})`;
  });
  const held = who.length === 0 ? 'not held' : `held by ${who.join(', ')}`;
  const waiting = names(waiters.map(({ owner }) => owner));
  return `${name}  ${held}${waiters.length === 0 ? '' : `, ${waiters.length} waiting: ${waiting}`}`;
}

/** The result of the last answered read. */
interface View extends KeysInUse {
  readonly atMs: number;
}

/** Reads all keys each time: durations grow even when nothing changes. */
async function drawLive(locks: Locks, query: Query, url: string, terminal: Terminal): Promise<void> {
  const begin = (): void => terminal.raw(BEGIN + CLEAR_SCREEN);
  // Ctrl-Z: the shell needs its cursor meanwhile.
  const suspend = (): void => {
    terminal.raw(`${END}\n`);
    process.kill(process.pid, 'SIGSTOP');
  };
  process.on('SIGTSTP', suspend).on('SIGCONT', begin);
  begin();
  let view: View | undefined;
  try {
    while (!query.signal.aborted && !terminal.failed()) {
      let trouble: string | undefined;
      try {
        // A store that hangs must not keep Ctrl-C waiting: a second one would leave the terminal without a cursor.
        const found = await unlessAborted(keysInUse(locks, { prefix: query.prefix }), query.signal);
        view = { ...found, atMs: wallMs() };
      } catch (error) {
        // After a first view, go on through an outage to show its end. A store that has never answered is a failure.
        if (!view || !(error instanceof StoreError)) throw error;
        trouble = error.message;
      }
      terminal.raw(frame(terminal, view, url, trouble));
      await pause(query.every, query.signal);
    }
  } finally {
    process.off('SIGTSTP', suspend).off('SIGCONT', begin);
    terminal.raw(`${END}\n`);
  }
}

function frame(terminal: Terminal, view: View, url: string, trouble: string | undefined): string {
  const { atMs, keys, refusals } = view;
  const title = `${printable(url)}  ${formatTime(new Date(atMs))}  ${keys.length} in use`;
  const warnings = [
    ...(trouble === undefined ? [] : [`Not read since then: ${printable(trouble)}`]),
    ...(refusals.length === 0 ? [] : [`${refusals.length} more cannot be read: holdfast ls says why.`]),
  ];
  const lines = keys.length === 0 ? ['No key is held or waited for.'] : keyTable(terminal, keys);
  const room = Math.max(1, terminal.rows - 4 - warnings.length);
  const hidden = lines.length - room;
  const shown = hidden > 0 ? [...lines.slice(0, room), `… and ${hidden} more lines`] : lines;
  const all = [
    terminal.paint('dim', title),
    ...warnings.map((line) => terminal.paint('yellow', line)),
    '',
    ...shown,
  ];
  return HOME + all.map((line) => `${line}${CLEAR_LINE_END}\n`).join('') + CLEAR_BELOW;
}
