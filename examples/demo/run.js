#!/usr/bin/env node
/**
 * The demo: four processes contend for one key on an SQLite file. The holder is killed with kill -9, and the next
 * waiter takes over. Live on a terminal; plain lines elsewhere. Ends by itself and leaves nothing behind.
 * `--record FILE` writes what a terminal would show as a picture that moves.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createLocks, openStore } from 'holdfast';
import { Contest } from './contest.js';
import { Recording } from './recording.js';
import { frame } from './screen.js';
import { summaryOf } from './summary.js';
import { sentence } from './words.js';

const KEY = 'the-one-key';
const FRAME_MS = 100;
const EXTRA_MS_MAX = 15_000;

/** Of a recording, which has no terminal. */
const RECORDED = { title: 'Four processes, one of them killed', rows: 20, columns: 84 };
const RECORD_MS = 250;

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '12' }, record: { type: 'string' } },
});
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

const recording = values.record === undefined ? null : new Recording();

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
    if (recording) await record(recording);
    await sleep(recording ? RECORD_MS : FRAME_MS, undefined, { signal: stopped.signal }).catch(unlessStopped);
  }
  await contest.end();
  if (live) await draw();
  if (recording) await record(recording);
} finally {
  if (live) process.stdout.write('\x1b[?25h\n\n');
  await locks.close();
  await rm(folder, { recursive: true, force: true });
}
const { good, lines } = summaryOf(contest);
console.log(lines.map((line) => (live ? `  ${line}` : line)).join('\n'));
if (recording && values.record) await writeFile(values.record, recording.svg(RECORDED));
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

/** @param {Recording} to */
async function record(to) {
  if (!contest.events.some(({ kind }) => kind === 'acquired')) return; // they are still starting
  const info = await locks.inspect(KEY);
  to.add(contest.elapsedMs, frame(contest, info, { seconds: duration, colour: true, ...RECORDED }));
}

/** @param {unknown} error */
function unlessStopped(error) {
  if (!stopped.signal.aborted) throw error;
}
