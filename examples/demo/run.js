#!/usr/bin/env node
/**
 * The demo: four processes contend for one key on an SQLite file. The holder is killed with kill -9, and the next
 * in line takes over. Live on a terminal; plain lines elsewhere. Ends by itself and leaves nothing behind.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createLocks, openStore } from 'holdfast';
import { Contest } from './contest.js';
import { frame } from './screen.js';
import { summaryOf } from './summary.js';
import { sentence } from './words.js';

const KEY = 'the-one-key';
const FRAME_MS = 100;
const EXTRA_MS_MAX = 15_000;

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '12' } } });
const duration = Number(values.seconds);
if (!Number.isFinite(duration) || duration < 3 || duration > 3_600) {
  console.error('--seconds wants a number from 3 to 3600: the holder needs time to be killed and replaced.');
  process.exit(2);
}

const live = process.stdout.isTTY === true;
const colour = live && !process.env.NO_COLOR;
const stopped = new AbortController();
process.once('SIGINT', () => stopped.abort());
process.once('SIGTERM', () => stopped.abort());

const folder = await mkdtemp(join(tmpdir(), 'holdfast-demo-'));
const url = `sqlite:${join(folder, 'locks.db')}`;
const locks = createLocks(await openStore(url), { owner: 'audience' });
const contest = new Contest({
  url,
  key: KEY,
  seconds: duration,
  onEvent: (event) => {
    if (!live) console.log(sentence(event, false));
  },
});

try {
  contest.start();
  if (live) process.stdout.write('\x1b[?25l\x1b[2J');
  while (isOn() && !stopped.signal.aborted) {
    if (live) await draw();
    await sleep(FRAME_MS, undefined, { signal: stopped.signal }).catch(unlessStopped);
  }
  await contest.end();
  if (live) await draw();
} finally {
  if (live) process.stdout.write('\x1b[?25h\n\n');
  await locks.close();
  await rm(folder, { recursive: true, force: true });
}
const { good, lines } = summaryOf(contest);
console.log(lines.map((line) => (live ? `  ${line}` : line)).join('\n'));
if (!stopped.signal.aborted && !good) process.exitCode = 1;

function isOn() {
  const leftMs = duration * 1_000 - contest.elapsedMs;
  return leftMs > 0 || (contest.isUnfinished && leftMs > -EXTRA_MS_MAX);
}

async function draw() {
  const { rows = 24, columns = 80 } = process.stdout;
  const info = await locks.inspect(KEY);
  const text = frame(contest, info, { seconds: duration, colour, rows, columns });
  process.stdout.write(`\x1b[H${text.map((line) => `${line}\x1b[K`).join('\n')}\x1b[J`);
}

/** @param {unknown} error */
function unlessStopped(error) {
  if (!stopped.signal.aborted) throw error;
}
