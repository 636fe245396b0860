/** `holdfast watch`: a live view on a terminal, a line a change elsewhere. */
import type { KeyChange, KeyInfo, Locks, WatchOptions } from 'holdfast';
import { pause, wallMs } from '../clock.js';
import type { Command } from '../command.js';
import { keyJson, keyTable } from '../describe.js';
import { formatTime } from '../duration.js';
import { EXIT, usageFailure } from '../exit.js';
import { printable, type Terminal } from '../output.js';
import { openSession } from '../session.js';
import { unlessAborted } from '../signals.js';

const EVERY_MS = 500;
const EVERY_MS_MIN = 50;
const EVERY_MS_MAX = 3_600_000;
/** How soon a reader that has left is noticed, though there is nothing to print. */
const READER_MS = 250;

/** No cursor, and long lines are cut off: wrapped ones would push the rest off the screen. */
const BEGIN = '\u001b[?25l\u001b[?7l';
const END = '\u001b[?7h\u001b[?25h';
const HOME = '\u001b[H';
const CLEAR_SCREEN = '\u001b[2J';
const CLEAR_LINE_END = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';

export const watch: Command = {
  name: 'watch',
  operands: { min: 0, max: 1, text: '[PREFIX]' },
  takesCommandLine: false,
  options: ['every'],
  summary: 'watch keys being taken, waited for and released',
  about: `Shows who holds what, live. On a terminal it redraws; elsewhere it prints a line for every change, with --json a JSON
line. Ends with Ctrl-C.`,
  examples: [
    ['holdfast watch', 'the live view'],
    ['holdfast watch deploy: --every 100ms', 'look more often'],
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
    void stopWithoutReader(terminal, stopping);
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

/** `holdfast watch | head -1`: otherwise it would look on until the next change, which may be tomorrow. */
async function stopWithoutReader(terminal: Terminal, stopping: AbortController): Promise<void> {
  while (!stopping.signal.aborted) {
    if (terminal.readerLeft()) stopping.abort();
    await pause(READER_MS, stopping.signal);
  }
}

type Query = Required<WatchOptions> & { readonly every: number };

async function printChanges(locks: Locks, query: Query, json: boolean, terminal: Terminal): Promise<void> {
  for await (const { kind, info } of locks.watch(query)) {
    if (json) terminal.out(JSON.stringify({ kind, ...keyJson(info) }));
    else terminal.out(`${formatTime(new Date(wallMs()))}  ${changeText(kind, info)}`);
    // A reader that is slow sees fewer looks, and not the memory full of old ones.
    await unlessAborted(terminal.flushed(), query.signal);
  }
}

function changeText(kind: KeyChange['kind'], { key, holders, waiters }: KeyInfo): string {
  const name = printable(key);
  if (kind === 'gone') return `${name}  is free`;
  const who = holders.map((holder) => {
    return `${printable(holder.owner)}${holder.resting ? ' (at rest)' : ''} (token ${holder.token})`;
  });
  const held = who.length === 0 ? 'held by nobody' : `held by ${who.join(', ')}`;
  return `${name}  ${held}${waiters.length === 0 ? '' : `, ${waiters.length} waiting`}`;
}

/** Looks at all keys each time: the times move even when nothing changes. */
async function drawLive(locks: Locks, query: Query, url: string, terminal: Terminal): Promise<void> {
  terminal.raw(BEGIN + CLEAR_SCREEN);
  try {
    while (!query.signal.aborted) {
      const keys: KeyInfo[] = [];
      for await (const info of locks.list({ prefix: query.prefix })) keys.push(info);
      terminal.raw(frame(terminal, keys, url));
      await pause(query.every, query.signal);
    }
  } finally {
    terminal.raw(`${END}\n`);
  }
}

function frame(terminal: Terminal, keys: readonly KeyInfo[], url: string): string {
  const title = `${printable(url)}  ${formatTime(new Date(wallMs()))}  ${keys.length} in use`;
  const lines = keys.length === 0 ? ['No key is held or waited for.'] : keyTable(terminal, keys);
  const room = Math.max(1, terminal.rows - 4);
  const hidden = lines.length - room;
  const shown = hidden > 0 ? [...lines.slice(0, room), `… and ${hidden} more lines`] : lines;
  const all = [terminal.paint('dim', title), '', ...shown];
  return HOME + all.map((line) => `${line}${CLEAR_LINE_END}\n`).join('') + CLEAR_BELOW;
}
