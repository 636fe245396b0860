/** One frame of the live view, as text: who holds, who waits in which order, and what happened last. */
import { NAMES } from './contest.js';
import { paint, paintAs, paintName, seconds, sentence } from './words.js';

const LOG_LINES = 10;

/**
 * @param {import('./contest.js').Contest} contest
 * @param {import('holdfast').KeyInfo | null} info the store's own view of the key
 * @param {{ seconds: number, colour: boolean, rows: number, columns: number }} view
 */
export function frame(contest, info, view) {
  const { colour } = view;
  const title = 'Four processes, one key, one SQLite file';
  const clock = `${(contest.elapsedMs / 1_000).toFixed(1)} of ${view.seconds} s`;
  const lines = ['', `  ${paint(title, 1, colour)}   ${paint(clock, 2, colour)}`, ''];
  for (const name of NAMES) lines.push(`  ${workerLine(contest, info, name, colour)}`);
  lines.push('', `  ${paint('What happened', 1, colour)}`);
  const room = Math.max(1, Math.min(LOG_LINES, view.rows - lines.length - 2));
  for (const event of contest.events.slice(-room)) lines.push(`  ${sentence(event, colour)}`);
  return lines;
}

/**
 * @param {import('./contest.js').Contest} contest
 * @param {import('holdfast').KeyInfo | null} info
 * @param {string} name
 * @param {boolean} colour
 */
function workerLine(contest, info, name, colour) {
  const worker = contest.workers.get(name);
  const pid = `process ${worker?.child.pid ?? '–'}`.padEnd(16);
  const bar = '▪'.repeat(Math.min(worker?.grants ?? 0, 20));
  const [mark, state] = standing(contest, info, name, colour);
  return `${mark} ${paintName(name, colour)}  ${paint(pid, 2, colour)}${state}  ${paintAs(name, bar, colour)}`;
}

/**
 * @param {import('./contest.js').Contest} contest
 * @param {import('holdfast').KeyInfo | null} info
 * @param {string} name
 * @param {boolean} colour
 */
function standing(contest, info, name, colour) {
  const wide = (/** @type {string} */ text) => text.padEnd(34);
  const holder = info?.holders.find(({ owner }) => owner === name);
  const place = info?.waiters.findIndex(({ owner }) => owner === name) ?? -1;
  const waiter = info?.waiters[place];
  const now = info?.now.getTime() ?? 0;
  const fate = contest.workers.get(name)?.fate;
  if (fate === 'killed') return [paint('✗', 31, colour), paint(wide('killed with kill -9'), 31, colour)];
  if (fate === 'left') return [' ', paint(wide('left'), 2, colour)];
  if (holder) return [paint('●', '1;32', colour), paint(wide(`HOLDS token ${holder.token}`), '1;32', colour)];
  if (waiter) {
    return [String(place + 1), wide(`waits, place ${place + 1}, ${seconds(now - waiter.since.getTime())}`)];
  }
  return [' ', paint(wide('–'), 2, colour)];
}
